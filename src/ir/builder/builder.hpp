// detail::Builder: the state behind fuse::Graph while it is built.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/graph.hpp>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::detail {

struct Builder : std::enable_shared_from_this<Builder> {
  ir::Graph graph;

  Builder() = default;
  /// Takes a whole graph; its scopes are closed.
  explicit Builder(ir::Graph graph);

  /// Adds a node after inference; throws a user Error naming op, shapes and line. Operands must be of this
  /// builder.
  Tensor add(ir::Op op, const std::vector<Tensor>& operands, ir::Attr attr, const ir::Type* declared,
             const std::source_location& at);
  /// Opens a scope. With `fixes_location` every op and scope inside takes `at` as its line: compound
  /// functions. A compound function inside another keeps the line of the outer one.
  ScopeGuard open_scope(std::string name, const std::source_location& at, bool fixes_location);
  void close_scope(bool fixes_location);

  static const std::shared_ptr<Builder>& of(const Tensor& tensor) { return tensor.builder_; }
  static ir::NodeId node(const Tensor& tensor) { return tensor.node_; }
  static const ir::Type& type(const Tensor& tensor) { return tensor.builder_->graph[tensor.node_].type; }
  Tensor tensor(ir::NodeId node) { return Tensor(shared_from_this(), node); }
  /// The builder of the first tensor among `operands`; wrong_graph unless the others are of it too.
  static Builder& of(std::string_view op, const std::vector<Arg>& operands);

  /// The value of a number in a dtype: floats round, but a written integer must be exact; dtype_mismatch
  /// when the dtype cannot hold it.
  ir::ConstantAttr literal(DType dtype, const Arg& number, std::string_view op,
                           const std::vector<Arg>& operands) const;
  /// wrong_graph when a symbol of the dim is not this graph's.
  void check_dim(const Dim& dim, std::string_view op, const std::source_location& at) const;
  /// Refuses an empty name and one that an input, a parameter or a symbol has.
  void check_name(const std::string& name, std::string_view op, const std::source_location& at) const;
  /// The user's line: the compound function's while one is open.
  ir::LocationId locate(const std::source_location& at);
  SourceLocation where(const std::source_location& at) const;
  /// Throws a user Error; operands are shown by type, numbers by value.
  [[noreturn]] void fail(ErrorCode code, std::string_view op, const std::vector<Arg>& operands,
                         std::string message, std::string hint, const std::source_location& at) const;

  std::vector<ir::ScopeId> scope_stack = {0};
  std::vector<ir::ScopeId>
      compounds;  ///< the scopes of the compound functions at work, innermost at the back
  std::unordered_map<std::string, ir::LocationId> location_ids;
  std::unordered_map<std::string, std::optional<Dim>> names;  ///< symbols with their dim; inputs, parameters
  std::unordered_set<std::string> output_names;
  std::int64_t next_stream = 0;  ///< the next stream of random numbers
};

}  // namespace fuse::detail
