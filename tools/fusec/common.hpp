// What the subcommands share: loading a graph, values for its dims, tables, files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <fuse/graph.hpp>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "ir/graph/ir_graph.hpp"
#include "plan/source.hpp"

namespace fuse::fusec {

[[noreturn]] void user_error(ErrorCode code, std::string message, std::string hint = {});

/// Reads and verifies a graph that something can be computed of: one without outputs is a user error.
Graph load_graph(const std::string& file);

/// What a text file has. Throws a user Error with code io.
std::string read_text(const std::string& file);

/// "x=x.npy" as {"x", "x.npy"}.
std::pair<std::string, std::string> split_assignment(std::string_view option, const std::string& text);

/// A value for every symbol: the one given ("B=4"), else the `inferred` one, else the hint, else 4 or what of
/// the range is nearest to it. Throws unknown_name, invalid_argument, invalid_extent.
DimValues resolve_dims(const ir::Graph& graph, const std::vector<std::string>& given,
                       const DimValues& inferred = {});
/// "B = 37, T = 16"; "none" without dims.
std::string to_string(const DimValues& dims);

int barrier_count(const codegen::KernelInfo& kernel);
/// The barriers of a kernel: `count` of those of the source, from number `first` on.
struct KernelBarriers {
  std::string name;
  std::size_t first = 0, count = 0;
};
/// The barrier that a planted fault leaves out.
std::optional<std::size_t> dropped_barrier(const PipelineOptions&);
/// Throws a user Error unless the source of the graph has the barrier that `options` drop. Gives the barriers
/// of all kernels; nothing where none is dropped.
std::vector<KernelBarriers> check_drop_barrier(const ir::Graph& graph, const Target& target,
                                               PipelineOptions options);

/// Rows of equal length, the first one the heading; columns after the first are aligned at the right.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// "main.cpp:4", empty where unknown.
std::string to_string(const SourceLocation& location);

/// A file of the command that an output must not be: "the graph", or another output.
struct OtherFile {
  std::string_view what;
  const std::string& path;
};
/// Throws a user error where nothing can be written into the directory, or to the file, that `option` names:
/// so that it is known before the work. Nothing is left there. A directory may be one that is still to be
/// made; the one of a file exists.
void try_directory(std::string_view option, const std::string& directory);
void try_file(std::string_view option, const std::string& file, std::initializer_list<OtherFile> others = {});

/// All or nothing; the first makes the directory.
void write_file(const std::string& directory, const std::string& name, std::span<const char> content);
void write_file(const std::string& file, std::span<const char> content);

void print_line(const std::string& line);

}  // namespace fuse::fusec
