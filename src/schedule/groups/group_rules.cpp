// SPDX-License-Identifier: Apache-2.0
#include "schedule/groups/group_rules.hpp"

namespace fuse::schedule {
namespace {

constexpr std::uint16_t E = bit(GroupClass::element_wise);
constexpr std::uint16_t B = bit(GroupClass::broadcast);
constexpr std::uint16_t R = bit(GroupClass::reduction);
constexpr std::uint16_t T = bit(GroupClass::transpose);
constexpr std::uint16_t V = bit(GroupClass::view);
constexpr std::uint16_t M = bit(GroupClass::movement);
constexpr std::uint16_t S = bit(GroupClass::scan);
constexpr std::uint16_t C = bit(GroupClass::contraction);

constexpr std::uint8_t fuse = bit(RuleSet::fuse);
constexpr std::uint8_t apollo = bit(RuleSet::apollo);
constexpr std::uint8_t both = fuse | apollo;

constexpr std::uint8_t none = 0;
constexpr std::uint8_t dims = bit(Check::loop_dims) | bit(Check::parameters);
constexpr std::uint8_t form = bit(Check::canonical_form);
constexpr std::uint8_t coverage = bit(Check::coverage);
constexpr std::uint8_t tiles = bit(Check::tiles);

using Class = GroupClass;

// Names that start with x are not in the paper: they come after Layer I, and --partition=apollo leaves them
// out. The conv rows of Table 1 wait for a convolution in the op table.
constexpr Rule table[] = {
    // name, producer, consumer, result, layer, sets, checks
    // Row 1, in the paper's order, would take what the GEMM could compute: only APOLLO's own set keeps it.
    {"6-matmul", C, E, Class::contraction, Layer::aggregate, fuse, bit(Check::epilogue)},
    {"1", E, E, Class::element_wise, Layer::aggregate, both, none},
    {"2", B, E, Class::broadcast, Layer::aggregate, both, none},
    {"3", B, B, Class::broadcast, Layer::aggregate, both, none},
    {"4", E, R, Class::reduction, Layer::aggregate, both, none},
    {"5", B, R, Class::reduction, Layer::aggregate, both, none},
    {"6-transpose", E | B, T, Class::transpose, Layer::aggregate, both, none},
    {"6-matmul", C, E, Class::contraction, Layer::aggregate, apollo, bit(Check::epilogue)},
    {"6-matmul", E, C, Class::contraction, Layer::aggregate, both, bit(Check::prologue)},
    {"x-broadcast", E, B, Class::broadcast, Layer::stitch, fuse, none},
    {"x-move", E | B | T | V | M, V | T | M, Class::movement, Layer::stitch, fuse, coverage},
    {"x-moved", T | V | M, E | B, Class::movement, Layer::stitch, fuse, none},
    {"x-reduce", T | V | M, R, Class::reduction, Layer::stitch, fuse, none},
    {"x-scan", E | B | T | V | M, S, Class::scan, Layer::stitch, fuse, none},
    {"x-bias", C, B, Class::contraction, Layer::stitch, fuse, bit(Check::epilogue)},
    {"7", R, E | B, Class::reduction, Layer::stitch, apollo, dims},
    {"8", R, R, Class::reduction, Layer::stitch, apollo, dims | form},
    // Where a scheme carries the value, a mismatch of loops, parameters or form selects the scheme.
    {"x7", R, E | B | T | V | M, Class::reduction, Layer::stitch, fuse, coverage | tiles},
    {"x8", R | S, R, Class::reduction, Layer::stitch, fuse, none},
    {"x-stitch-scan", R | S, S, Class::scan, Layer::stitch, fuse, none},
    {"x-scanned", S, E | B | T | V | M, Class::scan, Layer::stitch, fuse, coverage},
};

}  // namespace

std::string_view to_string(GroupClass c) {
  switch (c) {
    case GroupClass::element_wise:
      return "element_wise";
    case GroupClass::broadcast:
      return "broadcast";
    case GroupClass::reduction:
      return "reduction";
    case GroupClass::transpose:
      return "transpose";
    case GroupClass::view:
      return "view";
    case GroupClass::movement:
      return "movement";
    case GroupClass::scan:
      return "scan";
    case GroupClass::contraction:
      return "contraction";
    case GroupClass::boundary:
      return "boundary";
  }
  return "?";
}

GroupClass class_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Relation relation = info(graph[id].op).relation;
  switch (analysis::op_class(graph, id)) {
    case analysis::OpClass::source:
    case analysis::OpClass::element_wise:
      return GroupClass::element_wise;
    case analysis::OpClass::broadcast:
      return GroupClass::broadcast;
    case analysis::OpClass::reduction:
      return GroupClass::reduction;
    case analysis::OpClass::transpose:
      return GroupClass::transpose;
    case analysis::OpClass::view:
      return GroupClass::view;
    case analysis::OpClass::contraction:
      return GroupClass::contraction;
    case analysis::OpClass::opaque:
      if (relation == ir::Relation::custom) return GroupClass::boundary;
      return relation == ir::Relation::scan ? GroupClass::scan : GroupClass::movement;
  }
  return GroupClass::boundary;
}

std::span<const Rule> rules() { return table; }

const Rule* find_rule(GroupClass producer, GroupClass consumer, RuleSet set, std::uint8_t layers) {
  for (const Rule& rule : table) {
    if ((rule.producer & bit(producer)) && (rule.consumer & bit(consumer)) && (rule.sets & bit(set)) &&
        (bit(rule.layer) & layers))
      return &rule;
  }
  return nullptr;
}

}  // namespace fuse::schedule
