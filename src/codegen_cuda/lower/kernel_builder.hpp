// KernelBuilder: appends statements to a kernel under construction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "ir/kernel/kernel.hpp"

namespace fuse::codegen {

class KernelBuilder {
 public:
  KernelBuilder(const ir::Graph& graph, std::string name);

  kernel::Kernel kernel;

  /// Statements appended from here on belong to this node.
  void at(ir::NodeId node);

  kernel::BufferId buffer(std::string name, DType dtype, kernel::Space space, Dim elements, bool written);
  /// A value named after the node being lowered.
  kernel::VarId value(DType dtype, kernel::Rhs rhs);
  kernel::VarId compute(ir::Op op, DType dtype, std::vector<kernel::VarId> operands);
  /// A value that the next statement defines.
  kernel::VarId variable(DType dtype);
  std::vector<kernel::VarId> declare(kernel::ReductionId reduction, const std::string& name,
                                     std::vector<kernel::VarId> initial = {});
  void append(decltype(kernel::Stmt::node) node);
  /// Appends a compound statement whose body is what `fill` appends.
  void loop(kernel::For loop, const std::function<void()>& fill);
  void when(std::vector<kernel::IndexLess> conditions, const std::function<void()>& fill);
  /// Appends what runs where the number is 0, and what runs else. Both have the same shared memory.
  void either(const kernel::Index& number, const std::function<void()>& zero,
              const std::function<void()>& other);
  struct Alternative {
    std::vector<kernel::IndexLess> conditions{};
    std::function<void()> fill{};
  };
  /// Appends alternatives, of which a block runs one: they have the same shared memory.
  void alternatives(const std::vector<Alternative>&);
  /// A reduction of the table's op over elements of `element`.
  kernel::ReductionId reduction(ir::Op op, DType element);
  /// Reduces to (maximum, sum of exponentials below it): elements (x, 1) become (max x, sum exp(x - max x)).
  /// - max x)).
  kernel::ReductionId online_sum(DType element);
  /// The name of a component of its state.
  std::string component(const std::string& name, kernel::ReductionId reduction, std::size_t number) const;
  /// A name not used before in this kernel, starting with `base`.
  std::string unique(const std::string& base);

 private:
  /// A reduction of this state, whose region `fill` appends.
  kernel::ReductionId combined(kernel::Reduction, const std::function<void(kernel::Reduction&)>& fill);

  const ir::Graph& graph_;
  kernel::Origin origin_;
  std::string base_ = "v";
  std::vector<std::vector<kernel::Stmt>*> sinks_;
  std::set<std::string> names_;
  std::map<std::string, int> next_;
  // Shared arrays that are free here: of what does not run where this runs.
  std::vector<kernel::BufferId> free_{};
};

}  // namespace fuse::codegen
