// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/op.hpp"

#include <array>

namespace fuse::ir {
namespace {

constexpr OpInfo table[] = {
#define FUSE_ELEMENTWISE(name_, arity_, operands_, result_, ulp_, traits_, cuda_, note_) \
  {.op = Op::name_,                                                                      \
   .name = #name_,                                                                       \
   .arity = arity_,                                                                      \
   .relation = Relation::identity,                                                       \
   .traits = Trait::traits_,                                                             \
   .elementwise = true,                                                                  \
   .operands = OperandClass::operands_,                                                  \
   .result = ResultClass::result_,                                                       \
   .ulp = ulp_,                                                                          \
   .cuda = cuda_,                                                                        \
   .note = note_},
#define FUSE_REDUCTION(name_, operands_, identity_, combine_, note_) \
  {.op = Op::name_,                                                  \
   .name = #name_,                                                   \
   .arity = 1,                                                       \
   .relation = Relation::reduce,                                     \
   .traits = Trait::none,                                            \
   .operands = OperandClass::operands_,                              \
   .identity = Identity::identity_,                                  \
   .combine = Op::combine_,                                          \
   .note = note_},
#define FUSE_OP(name_, arity_, attribute_, relation_, traits_, note_) \
  {.op = Op::name_,                                                   \
   .name = #name_,                                                    \
   .arity = arity_,                                                   \
   .relation = Relation::relation_,                                   \
   .traits = Trait::traits_,                                          \
   .note = note_},
#include <fuse/ops.def>
};

}  // namespace

const OpInfo& info(Op op) { return table[static_cast<std::size_t>(op)]; }

std::optional<Op> parse_op(std::string_view name) {
  for (const OpInfo& row : table) {
    if (row.name == name) return row.op;
  }
  return std::nullopt;
}

}  // namespace fuse::ir
