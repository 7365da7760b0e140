// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/positive_values.hpp"

#include <algorithm>

namespace fuse::runtime::reference {
namespace {

using ir::Op;

/// Ordered: what is positive is not negative either.
enum class Sign : std::uint8_t { any, not_negative, positive };

class Signs {
 public:
  explicit Signs(const ir::Graph& graph) : graph_(graph) {}

  std::vector<bool> positive() {
    for (const ir::Node& node : graph_.nodes) signs_.push_back(sign_of(node));
    std::vector<bool> result;
    for (const Sign sign : signs_) result.push_back(sign == Sign::positive);
    return result;
  }

 private:
  Sign of(const ir::Node& node, std::size_t operand) const { return signs_[node.operands[operand]]; }
  /// The least sign of all operands from the first on.
  Sign least(const ir::Node& node, std::size_t first = 0) const {
    Sign sign = Sign::positive;
    for (std::size_t i = first; i < node.operands.size(); ++i) sign = std::min(sign, of(node, i));
    return sign;
  }

  Sign sign_of(const ir::Node& node) const {
    if (!is_floating(node.type.dtype)) return Sign::any;
    switch (node.op) {
      case Op::constant: {
        const double value = ir::attr<ir::ConstantAttr>(node).real;
        return value > 0 ? Sign::positive : value == 0 ? Sign::not_negative : Sign::any;
      }
      case Op::exp:
      case Op::exp2:
        return Sign::positive;
      case Op::abs:
        return Sign::not_negative;
      case Op::mul:
        if (node.operands[0] == node.operands[1]) return Sign::not_negative;
        return least(node);
      case Op::div:
        // What is divided by 0 is no number, or infinite.
        return least(node);
      case Op::add: {
        const Sign greatest = std::max(of(node, 0), of(node, 1));
        return least(node) == Sign::any ? Sign::any : greatest;
      }
      case Op::max:
        return std::max(of(node, 0), of(node, 1));
      case Op::min:
        return least(node);
      case Op::select:
        return least(node, 1);
      case Op::sqrt:
      case Op::rsqrt:
      case Op::reciprocal:
      case Op::convert:
      case Op::reduce_sum:
      case Op::reduce_max:
      case Op::reduce_min:
      case Op::broadcast_in_dim:
      case Op::reshape:
      case Op::transpose:
      case Op::slice:
      case Op::reverse:
      case Op::concat:
      case Op::cumulative_sum:
        return least(node);
      default:
        return Sign::any;
    }
  }

  const ir::Graph& graph_;
  std::vector<Sign> signs_;
};

}  // namespace

std::vector<bool> positive_nodes(const ir::Graph& graph) { return Signs(graph).positive(); }

}  // namespace fuse::runtime::reference
