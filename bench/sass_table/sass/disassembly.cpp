// SPDX-License-Identifier: Apache-2.0
#include "sass_table/sass/disassembly.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "os/temporary_folder.hpp"

namespace fuse::bench::sass {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

int number(std::string_view text, int base = 10) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

/// 22 of `//## File "x.cu", line 22 inlined at "x.cu", line 119`: a line of its own says more of 119.
int line_of(std::string_view text) {
  const auto at = text.find("\", line ");
  return at == std::string_view::npos ? 0 : number(text.substr(at + 8));
}

std::vector<std::string> operands_of(std::string_view text) {
  std::vector<std::string> operands;
  int depth = 0;
  std::size_t first = 0;
  const auto take = [&](std::size_t end) {
    const std::string_view operand = trimmed(text.substr(first, end - first));
    if (!operand.empty()) operands.emplace_back(operand);
    first = end + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '[' || text[i] == '(' || text[i] == '{') -
             (text[i] == ']' || text[i] == ')' || text[i] == '}');
    if (text[i] == ',' && depth == 0) take(i);
  }
  take(text.size());
  return operands;
}

/// "/*0010*/   @!P1 S2R R14, SR_CgaCtaId ;"
Instruction instruction_of(std::string_view text) {
  Instruction result;
  const auto end_of_address = text.find("*/");
  const auto end = text.find(';');
  if (end_of_address == std::string_view::npos || end == std::string_view::npos)
    throw std::runtime_error(fmt::format("nvdisasm printed no instruction in \"{}\"", text));
  result.address = number(text.substr(2, end_of_address - 2), 16);
  text = trimmed(text.substr(end_of_address + 2, end - end_of_address - 2));
  if (text.starts_with('@')) {
    const auto space = text.find(' ');
    result.predicate = text.substr(1, space - 1);
    text = trimmed(text.substr(space));
  }
  const auto space = text.find(' ');
  result.opcode = text.substr(0, space);
  if (space != std::string_view::npos) result.operands = operands_of(text.substr(space));
  return result;
}

struct Ran {
  int status = -1;
  std::string output;
};

std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

Ran run(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start a shell");
  Ran ran;
  std::array<char, 1 << 16> block;
  for (std::size_t got; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    ran.output.append(block.data(), got);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

bool executable(const std::string& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

std::string on_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (const std::string file = folder + '/' + name; executable(file)) return file;
  }
  return {};
}

/// The number behind "release 13.1, V" of `nvdisasm --version`; empty: it is another program.
std::string version_of(const std::string& path) {
  const Ran ran = run(quoted(path) + " --version 2>&1 </dev/null");
  const auto at = ran.output.find(", V");
  if (ran.status != 0 || at == std::string::npos || ran.output.find("disassembler") == std::string::npos)
    return {};
  return ran.output.substr(at + 3, ran.output.find_first_not_of("0123456789.", at + 3) - at - 3);
}

}  // namespace

bool Instruction::has(std::string_view modifier) const {
  for (auto at = opcode.find('.'); at != std::string::npos; at = opcode.find('.', at + 1)) {
    const std::string_view rest = std::string_view(opcode).substr(at + 1);
    if (rest.substr(0, rest.find('.')) == modifier) return true;
  }
  return false;
}

std::string Instruction::target() const {
  for (const std::string& operand : operands) {
    if (operand.starts_with("`(")) return operand.substr(2, operand.size() - 3);
  }
  return {};
}

Disassembly parse_disassembly(const std::string& text) {
  Disassembly result;
  std::vector<Function>* functions = nullptr;
  std::vector<int> lines;
  bool in_lines = false;
  std::istringstream in(text);
  for (std::string raw; std::getline(in, raw);) {
    const std::string_view line = trimmed(raw);
    if (line.starts_with("//##")) {
      if (!in_lines) lines.clear();
      lines.push_back(line_of(line));
      in_lines = true;
      continue;
    }
    in_lines = false;
    if (line.starts_with(".section\t")) {
      functions = nullptr;
      const auto at = line.find(".text.");
      if (at == std::string_view::npos) continue;
      const std::string name(line.substr(at + 6, line.find_first_of(",\"", at) - at - 6));
      functions = &result.kernels[name];
      functions->push_back({.name = name, .code = {}, .labels = {}});
      lines.clear();
    } else if (functions && line.ends_with(':') && !line.starts_with(".text.")) {
      const std::string label(line.substr(0, line.size() - 1));
      if (label == functions->front().name) continue;
      if (label.starts_with(".L")) {
        functions->back().labels[label] = functions->back().code.size();
      } else {
        functions->push_back({.name = label, .code = {}, .labels = {}});
        lines.clear();
      }
    } else if (functions && line.starts_with("/*")) {
      Instruction one = instruction_of(line);
      one.lines = lines;
      functions->back().code.push_back(std::move(one));
    }
  }
  if (result.kernels.empty()) throw std::runtime_error("nvdisasm printed no kernel");
  return result;
}

Nvdisasm Nvdisasm::find(const std::string& named) {
  const char* const variable = std::getenv("FUSE_NVDISASM");
  const std::string built = FUSE_SASS_TOOLS "/nvdisasm";
  std::string path, by;
  if (!named.empty()) {
    path = named, by = "--nvdisasm";
  } else if (variable && *variable) {
    path = variable, by = "FUSE_NVDISASM";
  } else if (executable(built)) {
    path = built, by = "./dev setup --bench";
  } else {
    path = on_path("nvdisasm"), by = "PATH";
  }
  if (path.empty()) {
    throw std::runtime_error(fmt::format(
        "nvdisasm is missing: --nvdisasm and FUSE_NVDISASM name none, and neither {} nor PATH has "
        "one.\n  hint: ./dev setup --bench takes it from the Python package triton; the CUDA "
        "toolkit's package cuda-nvdisasm has it too",
        built));
  }
  if (!executable(path))
    throw std::runtime_error(fmt::format("{} names {}, which is no program that can be run", by, path));
  const std::string version = version_of(path);
  if (version.empty())
    throw std::runtime_error(
        fmt::format("{} (by {}) is not NVIDIA's nvdisasm: its --version does not say so", path, by));
  return {path, version};
}

std::string Nvdisasm::disassemble(const std::vector<char>& cubin) const {
  const TemporaryFolder folder;
  folder.write("kernels.cubin", {cubin.data(), cubin.size()});
  const Ran ran = run(quoted(path_) + " -c -gi " + quoted(folder.path() + "/kernels.cubin") + " 2>" +
                      quoted(folder.path() + "/errors") + " </dev/null");
  if (ran.status == 0) return ran.output;
  const Ran errors = run("head -c 2000 " + quoted(folder.path() + "/errors"));
  throw std::runtime_error(fmt::format("{} (version {}) failed with status {}: {}", path_, version_,
                                       ran.status, trimmed(errors.output)));
}

}  // namespace fuse::bench::sass
