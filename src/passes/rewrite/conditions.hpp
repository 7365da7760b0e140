// Conditions and attributes of the rules: small questions about a match. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/rewrite/rewrite_rules.hpp"

namespace fuse::ir::algebra {

// Conditions on the type that the root computes in.
bool integers(const Match&);
bool floats(const Match&);
bool bools(const Match&);
bool not_floats(const Match&);
bool is_signed(const Match&);  ///< -1 is a value of it
bool integers_with_sign(const Match&);
bool compares_integers(const Match&);  ///< the inner op does
bool makes_bools(const Match&);

/// 1 / c is exact.
bool power_of_two(const Match&);
/// 1 / c is finite and not 0.
bool has_reciprocal(const Match&);
/// The middle type of two converts holds every value of the first, or drops only what the last drops too.
bool lossless_middle(const Match&);
bool float_middle(const Match&);  ///< three floating types
/// Both factors are computed for this node alone.
bool factors_used_once(const Match&);

bool same_type(const Match&);    ///< x has the root's type
bool same_type_y(const Match&);  ///< y has it
bool whole_slice(const Match&);
bool no_padding(const Match&);
bool reverses_nothing(const Match&);
bool keeps_order(const Match&);  ///< a transpose
bool unit_dims(const Match&);    ///< every reduced dim has extent 1
bool unit_dims_of_integers(const Match&);
bool unit_dims_of_floats(const Match&);

// Attributes of one op that does what two did.
std::optional<Attr> composed_transpose(const Match&);
std::optional<Attr> composed_slice(const Match&);
std::optional<Attr> composed_reverse(const Match&);
std::optional<Attr> composed_pad(const Match&);
std::optional<Attr> composed_broadcast(const Match&);
std::optional<Attr> transposed_broadcast(const Match&);  ///< for an operand whose dims stay in order
std::optional<Attr> sliced_broadcast(const Match&);      ///< a slice of repeated dims
std::optional<Attr> reshaped_broadcast(const Match&);    ///< for a reshape that only adds dims of extent 1
std::optional<Attr> composed_reduction(const Match&);    ///< for a value that nothing else needs
std::optional<Attr> permuted_reduction(const Match&);    ///< for a transpose; kept dims stay in order
std::optional<Attr> transposed_reduction(const Match&);  ///< the same; reduced dims stay in order, too
std::optional<Attr> same_reduction(const Match&);

}  // namespace fuse::ir::algebra
