// SPDX-License-Identifier: Apache-2.0
#include "common.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "analysis/facts.hpp"
#include "base/access.hpp"
#include "base/quoting.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/signature_of.hpp"
#include "os/mapped_file.hpp"
#include "runtime/execute/binding.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::fusec {
void user_error(ErrorCode code, std::string message, std::string hint) {
  throw Error({.code = code, .message = std::move(message), .hint = std::move(hint)});
}

Graph load_graph(const std::string& file) {
  Graph graph = Graph::load(file);
  if (ir_of(graph).outputs.empty()) {
    user_error(ErrorCode::invalid_argument,
               fmt::format("graph '{}' has no outputs: there is nothing to compute", graph.name()));
  }
  return graph;
}

std::string read_text(const std::string& file) {
  const InputFile in(file);
  std::string text(in.size(), '\0');
  in.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::pair<std::string, std::string> split_assignment(std::string_view option, const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    user_error(ErrorCode::invalid_argument, fmt::format("{} {} is not NAME=VALUE", option, in_quotes(text)),
               fmt::format("as in {} {}", option, option == "--dim" ? "B=64" : "x=x.npy"));
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

DimValues resolve_dims(const ir::Graph& graph, const std::vector<std::string>& given,
                       const DimValues& inferred) {
  DimValues values;
  for (const std::string& text : given) {
    const auto [name, digits] = split_assignment("--dim", text);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      user_error(ErrorCode::invalid_argument,
                 fmt::format("--dim {}: {} is not an integer", in_quotes(text), in_quotes(digits)),
                 fmt::format("as in --dim {}=64", name));
    }
    if (!values.emplace(name, value).second) {
      user_error(ErrorCode::duplicate_name, fmt::format("--dim gives {} twice", in_quotes(name)),
                 "give each dim one value");
    }
  }
  values.insert(inferred.begin(), inferred.end());
  // Likely values that assumptions allow: of what others determine, theirs.
  const analysis::Facts facts = analysis::facts_of(graph);
  const auto is_free = [](const ir::Symbol& symbol, const Dim& form) {
    return form.is_constant() || form.name() == symbol.name;
  };
  for (const bool free : {true, false}) {
    for (const ir::Symbol& symbol : facts.symbols()) {
      const Dim dim = Dim::symbol(symbol.name, symbol.range), form = facts.canonical(dim);
      if (values.contains(symbol.name) || is_free(symbol, form) != free) continue;
      const auto [min, max, hint] = symbol.range;
      const std::int64_t factor = std::max<std::int64_t>(facts.factor(dim), 1);
      const std::int64_t usual = std::clamp<std::int64_t>(hint != 0 ? hint : 4, min, std::max(min, max));
      const std::int64_t value = std::clamp((usual + factor - 1) / factor * factor, min, std::max(min, max));
      values.emplace(symbol.name, free ? value : form.evaluate([&](std::string_view name) {
        return values.at(std::string(name));
      }));
    }
  }
  return runtime::Binding(runtime::signature_of(graph, {}), values).values();
}

std::string to_string(const DimValues& dims) {
  std::string text;
  for (const auto& [name, value] : dims)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "none" : text;
}

int barrier_count(const codegen::KernelInfo& kernel) {
  return static_cast<int>(std::count_if(kernel.lines.begin(), kernel.lines.end(),
                                        [](const codegen::OpLine& line) { return line.barrier; }));
}

std::optional<std::size_t> dropped_barrier(const PipelineOptions& options) {
  const auto* const fault = options.fault ? std::get_if<kernel::PlantedFault>(&*options.fault) : nullptr;
  if (!fault || fault->kind != kernel::PlantedFault::Kind::barrier) return std::nullopt;
  return fault->site;
}

std::vector<KernelBarriers> check_drop_barrier(const ir::Graph& graph, const Target& target,
                                               PipelineOptions options) {
  const std::optional<std::size_t> dropped = dropped_barrier(options);
  std::vector<KernelBarriers> kernels;
  if (!dropped) return kernels;
  const std::size_t barrier = *dropped;
  options.fault.reset();
  std::size_t count = 0;
  for (const codegen::KernelInfo& kernel : run_pipeline(graph, target, options).source.kernels) {
    kernels.push_back({kernel.name, count, static_cast<std::size_t>(barrier_count(kernel))});
    count += kernels.back().count;
  }
  if (barrier < count) return kernels;
  user_error(ErrorCode::invalid_argument,
             fmt::format("fault barrier.{}: the kernels of graph '{}' have {} barriers for {}", barrier,
                         graph.name, count, target.name),
             count == 0 ? "" : fmt::format("0 to {}", count - 1));
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string to_string(const SourceLocation& location) {
  return location.line == 0 ? std::string() : fmt::format("{}:{}", location.file, location.line);
}

namespace {

[[noreturn]] void refuse_path(std::string_view option, const std::string& path, std::string_view why,
                              std::string hint = {}) {
  user_error(ErrorCode::io, fmt::format("{} {}: {}", option, in_quotes(path), why), std::move(hint));
}

void refuse_dash(std::string_view option, const std::string& path) {
  if (path == "-")
    refuse_path(option, path, "what is written there is no text", "write ./- for a name of one -");
}

/// Writes a file there and removes it. Empty, or why it does not go.
std::string trial(const std::filesystem::path& directory) {
  std::string name = (directory / ".fusec-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) return std::generic_category().message(errno);
  ::close(file);
  ::unlink(name.c_str());
  return {};
}

}  // namespace

void try_directory(std::string_view option, const std::string& directory) {
  namespace fs = std::filesystem;
  refuse_dash(option, directory);
  std::error_code error;
  std::vector<fs::path> made;  // the outermost last
  for (fs::path at = fs::absolute(directory); !fs::exists(at, error) && at.has_relative_path();
       at = at.parent_path()) {
    made.push_back(at);
  }
  error.clear();
  fs::create_directories(directory, error);
  const std::string why = error ? "it cannot be made: " + error.message() : trial(directory);
  for (const fs::path& path : made) ::rmdir(path.c_str());
  if (!why.empty()) refuse_path(option, directory, why);
}

void try_file(std::string_view option, const std::string& file, std::initializer_list<OtherFile> others) {
  namespace fs = std::filesystem;
  refuse_dash(option, file);
  if (file.empty()) refuse_path(option, file, "a file has a name");
  std::error_code ignored;
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) {
    refuse_path(option, file, "it is there and is not a regular file");
  }
  const fs::path parent = fs::absolute(file).parent_path();
  if (!fs::is_directory(parent, ignored)) {
    refuse_path(option, file, fmt::format("the directory {} does not exist", parent.string()), "make it");
  }
  const auto whole = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  for (const auto& [what, path] : others) {
    if (!path.empty() && whole(file) == whole(path))
      refuse_path(option, file, fmt::format("it is {}, which would be lost", what), "name another file");
  }
  if (const std::string why = trial(parent); !why.empty()) refuse_path(option, file, why);
}

void write_file(const std::string& directory, const std::string& name, std::span<const char> content) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error && !std::filesystem::is_directory(directory)) {
    user_error(ErrorCode::io, fmt::format("cannot make directory {}: {}", directory, error.message()));
  }
  write_file((std::filesystem::path(directory) / name).string(), content);
}

void write_file(const std::string& file, std::span<const char> content) {
  const std::array<std::span<const std::byte>, 1> segments = {std::as_bytes(content)};
  write_file_atomically(file, segments);
}

void print_line(const std::string& line) { fmt::print("{}\n", line); }

}  // namespace fuse::fusec
