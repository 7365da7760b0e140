// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/text/kernel_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/dims/dim_poly.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR

std::string_view type_in_text(DType type) {
  switch (type) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  case DType::name:                               \
    return cuda;
#include <fuse/dtypes.def>
  }
  return "?";
}

std::string real_literal(double value, bool is_double) {
  const char* type = is_double ? "f64" : "f32";
  if (std::isnan(value)) return fmt::format("nan_{}()", type);
  if (std::isinf(value)) return fmt::format("{}infinity_{}()", value < 0 ? "-" : "", type);
  // The shortest decimal that reads back as the same number.
  std::string text = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return is_double ? text : text + "f";
}

std::string literal(const Constant& constant, DType type) {
  switch (type) {
    case DType::f64:
      return real_literal(constant.real, true);
    case DType::f32:
      return real_literal(constant.real, false);
    case DType::f16:
    case DType::bf16:
      return fmt::format("to_{}({})", to_string(type), real_literal(constant.real, false));
    case DType::boolean:
      return constant.integer ? "true" : "false";
    case DType::i8:
    case DType::u8:
      return std::to_string(constant.integer);
    case DType::i32:
      if (constant.integer == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
      return std::to_string(constant.integer);
    case DType::i64:
      if (constant.integer == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807LL - 1)";
      return std::to_string(constant.integer) + "LL";
  }
  return "?";
}

std::string comment(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    if (c == '\\') c = '/';
  }
  return text;
}

KernelText::KernelText(const Kernel& kernel) : kernel_(kernel) {
  for (const Var& var : kernel.vars) names_.push_back(var.name);
}

std::vector<std::string> KernelText::names(const std::vector<VarId>& vars) const {
  std::vector<std::string> result;
  for (VarId var : vars) result.push_back(name(var));
  return result;
}

void KernelText::line(const std::string& content) {
  text.append(2 * static_cast<std::size_t>(depth_), ' ');
  text += content;
  text += '\n';
  ++line_;
}

void KernelText::op_line(const std::string& content, const Origin& origin, bool barrier) {
  lines.push_back({line_, origin.op, origin.scope, origin.location, barrier});
  const std::string note = comment(origin.op + (origin.scope.empty() ? "" : "  " + origin.scope));
  const std::size_t used = 2 * static_cast<std::size_t>(depth_) + content.size();
  line(content + std::string(used < 60 ? 60 - used : 2, ' ') + "// " + note);
}

std::string KernelText::apply(ir::Op op, const std::vector<std::string>& operands, DType operand_type,
                              DType result) {
  const ir::OpInfo& row = info(op);
  if (op == ir::Op::select) return fmt::format("{} ? {} : {}", operands[0], operands[1], operands[2]);
  if (op == ir::Op::convert) return fmt::format("to_{}({})", to_string(result), operands[0]);
  std::string expression;
  for (std::size_t i = 0; i < row.cuda.size(); ++i) {
    const char c = row.cuda[i];
    if (c == '$') {
      expression += operands[static_cast<std::size_t>(row.cuda[++i] - 'a')];
    } else if (c == '@') {
      if (operand_type == f32) expression += 'f';
    } else {
      expression += c;
    }
  }
  return expression;
}

std::string KernelText::head_of(const For& serial) const {
  const std::string step = serial.step.is(1)
                               ? fmt::format("++{}", serial.name)
                               : fmt::format("{} += {}", serial.name, detail::to_cxx(serial.step));
  return fmt::format("for ({} {} = {}; {} < {}; {}) {{", index_type(), serial.name,
                     detail::to_cxx(serial.begin), serial.name, detail::to_cxx(serial.end), step);
}

std::string KernelText::clamped(const BindData& bind) const {
  const std::string value =
      type(bind.value) == i64 ? name(bind.value) : fmt::format("to_i64({})", name(bind.value));
  return fmt::format("const {} {} = ({})clamped_index({}, {});", index_type(), bind.name, index_type(), value,
                     detail::to_cxx(bind.extent));
}

std::vector<KernelParam> params_of(const Kernel& kernel) {
  std::vector<KernelParam> params;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.space == Space::global)
      params.push_back({KernelParam::Kind::buffer, buffer.name, buffer.dtype, buffer.written});
  }
  for (const Dim& extent : kernel.extents)
    params.push_back({KernelParam::Kind::extent, std::string(extent.name()), kernel.index_type, false});
  return params;
}

}  // namespace fuse::codegen
