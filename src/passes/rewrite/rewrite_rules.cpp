// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/rewrite_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "passes/rewrite/conditions.hpp"

namespace fuse::ir::algebra {
namespace {

std::vector<Rule> make_rules() {
  const Pattern x = Pattern::value(0), y = Pattern::value(1), z = Pattern::value(2), w = Pattern::value(3);
  const Pattern c = Pattern::constant(0), d = Pattern::constant(1), any = Pattern::rest();
  constexpr double inf = std::numeric_limits<double>::infinity();

  constexpr Condition of_integers{"integers", integers}, of_floats{"floats", floats},
      of_bools{"bools", bools};
  constexpr Condition no_floats{"no floats", not_floats}, to_bool{"the result is bool", makes_bools};
  constexpr Condition of_signed{"signed", is_signed}, signed_integers{"signed integers", integers_with_sign};
  constexpr Condition inner_integers{"integers", compares_integers};
  constexpr Condition power{"c is a power of two and 1 / c exact", power_of_two};
  constexpr Condition invertible{"1 / c is finite and not 0", has_reciprocal};
  constexpr Condition lossless{"the middle type holds what counts", lossless_middle};
  constexpr Condition halves{"floats", float_middle}, once{"floats used once", factors_used_once};
  constexpr Condition same{"x has the type of the result", same_type};
  constexpr Condition whole{"it is all of x", whole_slice}, overwritten{"it is all of y", same_type_y};
  constexpr Condition unpadded{"nothing is added", no_padding},
      unmoved{"only dims of extent 1", reverses_nothing};
  constexpr Condition in_order{"dims stay in order", keeps_order},
      units{"reduced dims have extent 1", unit_dims};
  constexpr Condition integer_units{"reduced dims have extent 1, integers", unit_dims_of_integers};
  constexpr Condition float_units{"reduced dims have extent 1, floats", unit_dims_of_floats};
  constexpr Condition always{};
  constexpr Attributes none{}, both_transposes{"both permutations", composed_transpose};
  constexpr Attributes both_broadcasts{"both repetitions", composed_broadcast},
      both_slices{"both cuts", composed_slice};
  constexpr Attributes both_reverses{"the dims of one of them", composed_reverse},
      both_pads{"both widths", composed_pad};
  constexpr Attributes ordered{"dims that stay in order", transposed_broadcast},
      uncut{"x whole", sliced_broadcast};
  constexpr Attributes more_units{"the dims of extent 1 repeated too", reshaped_broadcast};
  constexpr Attributes both_reductions{"the dims of both, where the inner has no other user",
                                       composed_reduction};
  constexpr Attributes same_order{"dims that stay in order", transposed_reduction},
      same_elements{"the same dims, where those that are kept stay in order", permuted_reduction},
      same_dims{"its dims", same_reduction};
  constexpr Keeps bound = Keeps::bound, relaxed = Keeps::algebra;

  return {
      // Sums. +0 is no neutral element of floats: -0 + 0 is 0. -0 is.
      {x + -0.0, x},
      {x - 0, x},
      {(x + 0) + 0, x + 0},
      {-0.0 - x, -x},
      {x + -y, x - y},
      {x - -y, x + y},
      {x - x, pattern(0), of_integers},
      {(x - y) + y, x, of_integers},
      {(x + y) - y, x, of_integers},
      {(x + c) + d, x + (c + d), of_integers},
      {-(-x), x},
      {-(x - y), y - x, of_integers},
      {-(x * c), x * -c},
      // Products. 0 * x is NaN for infinite x.
      {x * 1, x},
      {x * -1, -x},
      {x * 0, pattern(0), of_integers},
      {-x * -y, x * y},
      {-x * c, x * -c},
      {abs(x) * abs(x), x * x},
      {(x * c) * d, x * (c * d), of_integers},
      // Quotients. Both sides of the power of two round the same real number.
      {x / 1, x},
      {x / -1, -x, of_signed},
      {x / 0, pattern(0), of_integers},
      {0 / x, pattern(0), of_integers},
      {-x / -y, x / y, of_floats},
      {x / c, x * (1 / c), power},
      {1 / x, reciprocal(x), of_floats},
      {x % 1, pattern(0), of_integers},
      {x % -1, pattern(0), signed_integers},
      // Powers. The table allows pow 8 ulps; a product is rounded right, and cheap.
      {pow(x, 0), pattern(1)},
      {pow(1, x), pattern(1)},
      {pow(x, 1), x, always, none, bound},
      {pow(x, 2), x * x, always, none, bound},
      {pow(x, 3), (x * x) * x, always, none, bound},
      {pow(x, -1), reciprocal(x), of_floats, none, bound},
      {pow(2, x), exp2(x), of_floats, none, bound},
      // Signs and roundings.
      {abs(abs(x)), abs(x)},
      {abs(-x), abs(x), of_signed},
      {abs(x * x), x * x, of_floats},
      {sign(sign(x)), sign(x)},
      {floor(floor(x)), floor(x)},
      {floor(ceil(x)), ceil(x)},
      {floor(round(x)), round(x)},
      {ceil(floor(x)), floor(x)},
      {ceil(ceil(x)), ceil(x)},
      {ceil(round(x)), round(x)},
      {round(floor(x)), floor(x)},
      {round(ceil(x)), ceil(x)},
      {round(round(x)), round(x)},
      // Extremes. +0 is greater than -0, so the order of the operands does not count.
      {max(x, x), x},
      {min(x, x), x},
      {max(max(x, y), x), max(x, y)},
      {min(min(x, y), x), min(x, y)},
      {max(max(x, c), d), max(x, max(c, d))},
      {min(min(x, c), d), min(x, min(c, d))},
      {max(x, -x), abs(x), of_signed},
      {min(x, -x), -abs(x), of_signed},
      {max(x, -inf), x},
      {min(x, inf), x},
      {clamp(x, -inf, inf), x},
      {clamp(clamp(x, y, z), y, z), clamp(x, y, z)},
      // Logic and comparisons. A NaN is neither less than, nor equal to, nor greater than anything.
      {!!x, x},
      {x && 1, x},
      {x && 0, pattern(0)},
      {x && x, x},
      {x || 0, x},
      {x || 1, pattern(1)},
      {x || x, x},
      {!(x == y), x != y},
      {!(x != y), x == y},
      {!(x < y), x >= y, inner_integers},
      {!(x <= y), x > y, inner_integers},
      {!(x > y), x <= y, inner_integers},
      {!(x >= y), x < y, inner_integers},
      {x == 1, x, of_bools},
      {x == 0, !x, of_bools},
      {x != 0, x, of_bools},
      {x != 1, !x, of_bools},
      {x == x, pattern(1), no_floats},
      {x != x, pattern(0), no_floats},
      {x < x, pattern(0)},
      {x > x, pattern(0)},
      {x <= x, pattern(1), no_floats},
      {x >= x, pattern(1), no_floats},
      // Bits.
      {~~x, x},
      {x & x, x},
      {x & 0, pattern(0)},
      {x & -1, x},
      {x | x, x},
      {x | 0, x},
      {x | -1, pattern(-1)},
      {x ^ x, pattern(0)},
      {x ^ 0, x},
      {shift_left(x, 0), x},
      {shift_right(x, 0), x},
      // Choices.
      {select(1, x, y), x},
      {select(0, x, y), y},
      {select(x, y, y), y},
      {select(!x, y, z), select(x, z, y)},
      {select(x, 1, 0), x, to_bool},
      {select(x, 0, 1), !x, to_bool},
      {select(x, 1, 0), convert(x)},
      {select(x, select(x, y, z), w), select(x, y, w)},
      {select(x, y, select(x, z, w)), select(x, y, w)},
      {convert(x), x, same},
      {convert(convert(x)), convert(x), lossless},
      // Movement.
      {reshape(x), x, same},
      {reshape(reshape(x)), reshape(x)},
      {transpose(x), x, in_order},
      {transpose(transpose(x)), transpose(x), always, both_transposes},
      {transpose(broadcast_in_dim(x)), broadcast_in_dim(x), always, ordered},
      {broadcast_in_dim(x), x, same},
      {broadcast_in_dim(broadcast_in_dim(x)), broadcast_in_dim(x), always, both_broadcasts},
      {broadcast_in_dim(reshape(x)), broadcast_in_dim(x), always, more_units},
      {slice(x), x, whole},
      {slice(slice(x)), slice(x), always, both_slices},
      {slice(broadcast_in_dim(x)), broadcast_in_dim(x), always, uncut},
      {reverse(x), x, unmoved},
      {reverse(reverse(x)), reverse(x), always, both_reverses},
      {pad(x, y), x, unpadded},
      {pad(pad(x, y), y), pad(x, y), always, both_pads},
      {concat(x), x},
      {dynamic_slice(x, any), x, same},
      {dynamic_update_slice(x, y, any), y, overwritten},
      // Reductions of one element. A sum starts from 0, and 0 + -0 is 0.
      {reduce_sum(x), reshape(x), integer_units},
      {reduce_sum(x), reshape(x) + 0, float_units},
      {reduce_prod(x), reshape(x), units},
      {reduce_max(x), reshape(x), units},
      {reduce_min(x), reshape(x), units},
      {reduce_any(x), reshape(x), units},
      {reduce_all(x), reshape(x), units},
      {argmax(x), pattern(0), units},
      {argmin(x), pattern(0), units},
      // Reductions of reductions, where the order does not count.
      {reduce_sum(reduce_sum(x)), reduce_sum(x), of_integers, both_reductions},
      {reduce_prod(reduce_prod(x)), reduce_prod(x), of_integers, both_reductions},
      {reduce_max(reduce_max(x)), reduce_max(x), always, both_reductions},
      {reduce_min(reduce_min(x)), reduce_min(x), always, both_reductions},
      {reduce_any(reduce_any(x)), reduce_any(x), always, both_reductions},
      {reduce_all(reduce_all(x)), reduce_all(x), always, both_reductions},
      // Reductions of transposes, where elements meet in the same order or their order does not count.
      {reduce_sum(transpose(x)), reduce_sum(x), of_floats, same_order},
      {reduce_prod(transpose(x)), reduce_prod(x), of_floats, same_order},
      {reduce_sum(transpose(x)), reduce_sum(x), of_integers, same_elements},
      {reduce_prod(transpose(x)), reduce_prod(x), of_integers, same_elements},
      {reduce_max(transpose(x)), reduce_max(x), always, same_elements},
      {reduce_min(transpose(x)), reduce_min(x), always, same_elements},
      {reduce_any(transpose(x)), reduce_any(x), always, same_elements},
      {reduce_all(transpose(x)), reduce_all(x), always, same_elements},
      {argmax(transpose(x)), argmax(x), always, same_order},
      {argmin(transpose(x)), argmin(x), always, same_order},
      // Relaxed: the same for real numbers.
      {(x + c) + d, x + (c + d), of_floats, none, relaxed},
      {(x * c) * d, x * (c * d), of_floats, none, relaxed},
      {x / c, x * (1 / c), invertible, none, relaxed},
      {(x * y) + (x * z), x * (y + z), once, none, relaxed},
      {(x * y) - (x * z), x * (y - z), once, none, relaxed},
      {exp(x) * exp(y), exp(x + y), once, none, relaxed},
      {reciprocal(sqrt(x)), rsqrt(x), always, none, relaxed},
      {y / sqrt(x), y * rsqrt(x), always, none, relaxed},
      {convert(convert(x)), convert(x), halves, none, relaxed},
      {reduce_sum(reduce_sum(x)), reduce_sum(x), of_floats, both_reductions, relaxed},
      {reduce_sum(x * c), reduce_sum(x) * c, of_floats, same_dims, relaxed},
  };
}

}  // namespace

std::string to_string(const Rule& rule) {
  std::string text = fmt::format("{} -> {}", to_string(rule.from), to_string(rule.to));
  if (!rule.where.text.empty()) text += fmt::format(" where {}", rule.where.text);
  if (!rule.attributes.text.empty()) text += fmt::format(" with {}", rule.attributes.text);
  return text;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = make_rules();
  return all;
}

}  // namespace fuse::ir::algebra
