// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/text/identifiers.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "codegen_cuda/primitives/primitives.hpp"
#include "ir/graph/op.hpp"

namespace fuse::codegen {
namespace {

// What a parameter may not be called: words of C++, macros that compilers predefine, and CUDA's own
// variables.
constexpr std::array reserved = {
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "final",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "import",
    "inline",
    "int",
    "long",
    "module",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "override",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "linux",
    "unix",
    "assert",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    // what the text of the cpu device calls its own
    "all",
    "any",
    "as_mask",
    "as_value",
    "block",
    "call",
    "clamped_index",
    "compared_index",
    "full",
    "index_value",
    "lanes",
    "load_and_ask_for_next",
    "prefetch",
    "random_each_f32",
    "random_each_f64",
    "run",
    "running_maximum",
    "running_minimum",
    "select",
    "store_one",
    "store_result",
    "stream",
    "take",
    "transpose_tile",
    "value_of",
    "vec",
    "warp_scan_sum",
};

/// Words of C++, and expf, exp, ...: what the op table's spellings call.
bool is_taken(const std::string& name) {
  static const std::unordered_set<std::string> words = [] {
    std::unordered_set<std::string> result(reserved.begin(), reserved.end());
    for (int op = 0; op < ir::op_count; ++op) {
      const std::string_view spelling = info(static_cast<ir::Op>(op)).cuda;
      const auto at = spelling.find('@');
      if (at == std::string_view::npos) continue;
      result.emplace(spelling.substr(0, at));
      result.emplace(std::string(spelling.substr(0, at)) + 'f');
    }
    return result;
  }();
  return words.contains(name);
}

}  // namespace

std::string c_identifier(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
    // A run of other characters becomes one underscore: doubled ones belong to the implementation.
    if (letter && !(c == '_' && !result.empty() && result.back() == '_')) result += c;
    if (!letter && !result.empty() && result.back() != '_') result += '_';
  }
  const bool digit = !result.empty() && result[0] >= '0' && result[0] <= '9';
  if (result.empty() || digit || result[0] == '_') result = 'n' + result;
  // A name followed by "(" in the text is a function of the dialect; parameters stay away from all of them.
  // Macros are spelled in capitals; there are too many to list.
  const bool capitals = result.size() > 1 && std::none_of(result.begin(), result.end(),
                                                          [](char c) { return c >= 'a' && c <= 'z'; });
  const bool taken = capitals || is_taken(result) || find_primitive(result) != nullptr;
  return taken ? result + '_' : result;
}

}  // namespace fuse::codegen
