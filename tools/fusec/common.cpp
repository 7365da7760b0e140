// SPDX-License-Identifier: Apache-2.0
#include "common.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "analysis/facts.hpp"
#include "pipeline.hpp"
#include "runtime/binding.hpp"
#include "runtime/host_tensor.hpp"
#include "runtime/mapped_file.hpp"

namespace fuse::fusec {
namespace {

std::string profile_names() {
  std::string text;
  for (const std::string_view name : target_profile_names()) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

}  // namespace

namespace {

/// An option whose value is one of a few words.
template <class T>
CLI::Option* add_choice(CLI::App& command, const char* name, T& value,
                        const std::map<std::string, T>& choices, const char* help) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  return command
      .add_option_function<std::string>(
          name, [&value, choices](const std::string& word) { value = choices.at(word); }, help)
      ->check(CLI::IsMember(words))
      ->type_name("TEXT");
}

/// How the graph is cut.
void add_cut_options(CLI::App& command, CompileOptions& options) {
  add_choice<int>(
      command, "--layers", options.layers, {{"1", 1}, {"1,2", 2}, {"1,2,3", 3}},
      "APOLLO's layers: 1 (aggregate), 1,2 (stitch), 1,2,3 (independent branches too; the default)");
  CLI::Option* rules =
      add_choice<Cut>(command, "--partition", options.cut, {{"fuse", Cut::fuse}, {"apollo", Cut::apollo}},
                      "fuse (the default), or apollo: its rules as printed");
  add_choice<Cut>(command, "--baseline", options.cut,
                  {{"xla", Cut::xla}, {"tvm", Cut::tvm}, {"none", Cut::one_op}},
                  "Cut as another compiler would: xla, tvm, none (a kernel an op)")
      ->excludes(rules);
  command.add_option("--max-inputs", options.max_inputs, "Values that a kernel reads at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 400));
}

}  // namespace

void add_graph_options(CLI::App& command, GraphOptions& options) {
  command.add_option("FILE", options.file, "The graph, .fuse text")->required();
  command.add_option("--profile", options.profile, "The GPU to schedule for: " + profile_names())
      ->capture_default_str();
  command.add_flag("--relaxed-rounding", options.compile.relaxed_rounding,
                   "Let the passes change roundings where that saves work");
  command.add_flag("!--no-gemm-merge", options.compile.merge_gemms,
                   "Keep GEMMs apart that share an operand or a shape");
  add_cut_options(command, options.compile);
}

void add_dim_option(CLI::App& command, GraphOptions& options) {
  add_list_option(command, "--dim", options.dims,
                  "B=4: the value of a dim; else its hint, else 4 as far as its range allows");
}

CLI::Option* add_list_option(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                             const std::string& help) {
  return command.add_option(name, values, help)->allow_extra_args(false);
}

void user_error(ErrorCode code, std::string message, std::string hint) {
  throw Error({.code = code, .message = std::move(message), .hint = std::move(hint)});
}

Graph load_graph(const std::string& file) {
  Graph graph = Graph::load(file);
  if (graph.ir().outputs.empty()) {
    user_error(ErrorCode::invalid_argument,
               fmt::format("graph '{}' has no outputs: there is nothing to compute", graph.name()));
  }
  return graph;
}

std::pair<std::string, std::string> split_assignment(std::string_view option, const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    user_error(ErrorCode::invalid_argument,
               fmt::format("{} {} is not NAME=VALUE", option, runtime::quoted(text)));
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
      user_error(ErrorCode::invalid_argument, fmt::format("--dim {}: {} is not an integer",
                                                          runtime::quoted(text), runtime::quoted(digits)));
    }
    if (!values.emplace(name, value).second) {
      user_error(ErrorCode::duplicate_name, fmt::format("--dim gives {} twice", runtime::quoted(name)));
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
  return runtime::Binding(graph, values).values();
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

void check_drop_barrier(const ir::Graph& graph, const Target& target, PipelineOptions options) {
  const int barrier = std::exchange(options.drop_barrier, -1);
  if (barrier < 0) return;
  int count = 0;
  for (const codegen::KernelInfo& kernel : run_pipeline(graph, target, options).source.kernels) {
    count += barrier_count(kernel);
  }
  if (barrier < count) return;
  user_error(ErrorCode::invalid_argument,
             fmt::format("--drop-barrier {}: the kernels of graph '{}' have {} barriers for {}", barrier,
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

void write_file(const std::string& directory, const std::string& name, std::span<const char> content) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error && !std::filesystem::is_directory(directory)) {
    user_error(ErrorCode::io, fmt::format("cannot make directory {}: {}", directory, error.message()));
  }
  const std::array<std::span<const std::byte>, 1> pieces = {std::as_bytes(content)};
  runtime::write_file_atomically((std::filesystem::path(directory) / name).string(), pieces);
}

void print_line(const std::string& line) { fmt::print("{}\n", line); }

}  // namespace fuse::fusec
