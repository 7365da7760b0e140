// fusec doctor: what fuse finds on this machine, and what is wrong. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "compile/toolchains/doctor.hpp"
#include "fusec/commands.hpp"
#include "fusec/commands/cpu_doctor.hpp"
#include "fusec/print/fusec_json.hpp"
#include "os/environment.hpp"

namespace fuse::fusec {
namespace {

using runtime::Diagnosis;

std::string archs_text(const std::vector<int>& archs) {
  std::string text;
  for (const int arch : archs) text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", arch);
  return text;
}

std::string state_text(const runtime::DirectoryFinding& directory) {
  const DirectoryState& s = directory.state;
  if (!s.exists) return "does not exist";
  std::string text = s.read_only ? "read-only" : s.writable ? "writable" : "not writable";
  if (!s.executable) text += ", noexec";
  return text + fmt::format(", {} MB free", s.free_bytes / 1'000'000);
}

/// Every line of `text` after the first moves in.
std::string indented(const std::string& text, const std::string& by) {
  std::string result;
  for (const char c : text) result += c == '\n' ? "\n" + by : std::string(1, c);
  return result;
}

std::string doctor_text(const Diagnosis& d) {
  std::string text = fmt::format("fuse {}\n\ndevices\n", d.version);
  for (const runtime::DeviceFinding& device : d.devices) {
    text += fmt::format("  {:<10} {}: {}\n", device.name, device.works ? "works" : "does not work",
                        device.detail);
  }
  std::string cpu = cpu_report();
  if (cpu.ends_with('\n')) cpu.pop_back();
  text += "\nthe cpu device\n  " + indented(cpu, "  ");
  text += "\n\nlibraries\n";
  for (const runtime::LibraryFinding& library : d.libraries) {
    text += fmt::format("  {}: {}{}{}\n", library.name, library.found ? library.file : "not usable",
                        library.version.empty() ? "" : ", version ", library.version);
    for (const std::string& line : library.tried) text += fmt::format("    tried {}\n", line);
    if (!library.note.empty()) text += fmt::format("    {}\n", library.note);
  }
  if (!d.nvrtc_archs.empty()) {
    text += fmt::format("  NVRTC compiles for {}\n", archs_text(d.nvrtc_archs));
  }
  text += fmt::format("\nC++ compiler of the emulated and the cpu device\n  {}\n", d.compiler.looked_for);
  if (!d.compiler.version.empty()) text += fmt::format("  {}\n", d.compiler.version);
  text += "\ndirectories\n";
  for (const runtime::DirectoryFinding& directory : d.directories) {
    const std::string at =
        directory.path.empty() ? "" : fmt::format(" {}: {}", directory.path, state_text(directory));
    text += fmt::format("  {}{}; {}\n", directory.use, at, directory.note);
  }
  text += "\nenvironment\n";
  for (const Variable variable : all_variables()) {
    const std::string value = value_of(variable);
    text += fmt::format("  {}{}\n", name_of(variable), value.empty() ? " is not set" : "=" + value);
  }
  text += d.problems.empty() ? "\nno problems\n" : "\nproblems\n";
  for (const runtime::Problem& problem : d.problems) {
    text += fmt::format("  {} [{}]: {}\n", problem.where, to_string(problem.code),
                        indented(problem.message, "      "));
    if (!problem.hint.empty()) text += fmt::format("    hint: {}\n", problem.hint);
  }
  return text;
}

Json environment() {
  Json json = Json::object();
  for (const Variable variable : all_variables()) {
    json[std::string(name_of(variable))] = value_of(variable);
  }
  return json;
}

std::string doctor_json(const Diagnosis& d) {
  Json json = {{"version", 1}, {"fuse", d.version}, {"usable", d.usable()}};
  json["devices"] = json["libraries"] = json["directories"] = json["problems"] = Json::array();
  for (const auto& device : d.devices) {
    json["devices"].push_back({{"name", device.name}, {"works", device.works}, {"detail", device.detail}});
  }
  json["cpu"] = cpu_json();
  for (const auto& library : d.libraries) {
    json["libraries"].push_back({{"name", library.name},
                                 {"found", library.found},
                                 {"version", library.version},
                                 {"file", library.file},
                                 {"tried", library.tried},
                                 {"note", library.note}});
  }
  json["nvrtc_archs"] = d.nvrtc_archs;
  json["compiler"] = {
      {"path", d.compiler.path}, {"version", d.compiler.version}, {"looked_for", d.compiler.looked_for}};
  for (const auto& directory : d.directories) {
    json["directories"].push_back({{"use", directory.use},
                                   {"path", directory.path},
                                   {"exists", directory.state.exists},
                                   {"writable", directory.state.writable},
                                   {"read_only", directory.state.read_only},
                                   {"executable", directory.state.executable},
                                   {"free_bytes", directory.state.free_bytes},
                                   {"note", directory.note}});
  }
  json["environment"] = environment();
  for (const auto& problem : d.problems) {
    json["problems"].push_back({{"where", problem.where},
                                {"code", to_string(problem.code)},
                                {"message", problem.message},
                                {"hint", problem.hint}});
  }
  return json_text(json);
}

}  // namespace

int execute(const DoctorOptions& options) {
  Diagnosis d = runtime::diagnose();
  diagnose_cpu(d);
  fmt::print("{}", options.json ? doctor_json(d) : doctor_text(d));
  return d.usable() ? 0 : 1;
}

}  // namespace fuse::fusec
