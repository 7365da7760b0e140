// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/costly_ops.hpp"

namespace fuse::ir {
namespace {

// The traits of the table.
constexpr bool none = false, costly = true, commutative = false, pairs = false, commutative_pairs = false;

void add(std::vector<CostlyOp>& ops, std::string_view name, bool is_costly, std::string_view text) {
  if (!is_costly) return;
  CostlyOp op{.name = name};
  const std::string_view call = text.substr(0, text.find('('));
  if (call.ends_with('@')) {
    const std::string of_f64(call.substr(0, call.size() - 1));
    op.calls = {of_f64, of_f64 + 'f'};
  } else {
    op.calls = {std::string(call)};
  }
  ops.push_back(std::move(op));
}

}  // namespace

const std::vector<CostlyOp>& costly_ops() {
  static const std::vector<CostlyOp> all = [] {
    std::vector<CostlyOp> ops;
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note) \
  add(ops, #name, traits, cuda);
#include <fuse/ops.def>
    return ops;
  }();
  return all;
}

}  // namespace fuse::ir
