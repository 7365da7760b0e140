// What the texts of kernels share, whatever they are for: names, literals, ops, and lines that name their op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.hpp"
#include "plan/source.hpp"

namespace fuse::codegen {

/// The type as texts spell it: "long long".
std::string_view type_in_text(DType);
/// The constant as a literal of the type.
std::string literal(const kernel::Constant&, DType);
std::string real_literal(double value, bool is_double);
/// Names come from the user: in a comment they may neither end the line nor, by a backslash, join it to the
/// next.
std::string comment(std::string text);

/// What a launch passes to the kernel, in order.
std::vector<KernelParam> params_of(const kernel::Kernel&);

/// The text of one kernel, which a printer adds to line by line.
class KernelText {
 public:
  /// Lines are counted from the text's own first line, 0.
  explicit KernelText(const kernel::Kernel&);

  std::string text;
  std::vector<OpLine> lines;

 protected:
  std::string_view index_type() const { return type_in_text(kernel_.index_type); }
  const std::string& name(kernel::VarId var) const { return names_[var]; }
  DType type(kernel::VarId var) const { return kernel_.vars[var].dtype; }
  std::vector<std::string> names(const std::vector<kernel::VarId>& vars) const;

  void line(const std::string& content);
  /// A line that computes an op: the text names it, and faults find it.
  void op_line(const std::string& content, const kernel::Origin& origin, bool barrier = false);
  /// The spelling of an op (ops.def) on these operands.
  static std::string apply(ir::Op op, const std::vector<std::string>& operands, DType operand_type,
                           DType result);

  /// "for (int k = 0; k < n; ++k) {"
  std::string head_of(const kernel::For& serial) const;
  /// A value of one thread as an index inside the extent.
  std::string clamped(const kernel::BindData& bind) const;

  const kernel::Kernel& kernel_;
  std::vector<std::string> names_{};  ///< of the kernel's vars; a region gets those of what it combines
  int depth_ = 0;

 private:
  int line_ = 0;
};

}  // namespace fuse::codegen
