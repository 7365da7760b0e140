// Signature: what an application sees of a compiled graph, and what prepare checks of its dims, without the
// graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dims/guard.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::runtime {

/// An extent that is not 0 where the result has elements.
struct FilledExtent {
  bool gathered = false;  ///< else reduced
  std::int64_t axis = 0;  ///< axis of the operand
  Dim extent{};
};

struct Signature {
  /// A symbol that has to have a value, and the first op that needs it.
  struct Need {
    std::string symbol;
    std::string value;  ///< "%3 of type f32[B, 4]"
  };
  struct Slice {
    Dim start{}, limit{}, extent{};  ///< extent: the operand's
  };
  /// What only the dims decide about an op. No op before it asks the same.
  struct Op {
    std::string op;                   ///< "reduce_sum"
    std::vector<std::string> shapes;  ///< shapes of its operands, for errors
    SourceLocation location{};        ///< the user's line
    std::string type;                 ///< "f32[B, 4]"
    DType dtype = f32;
    std::vector<Dim> dims{};        ///< the result's dims
    std::vector<Dim> other_dims{};  ///< dims of its attributes
    std::vector<Slice> slices{};    ///< by axis
    std::optional<FilledExtent> filled{};
  };

  std::string name;  ///< the graph's name
  std::vector<ir::Symbol> symbols{};
  std::vector<Slot> slots{};
  std::vector<ir::Guard> guards{};  ///< what else prepare checks of the dims
  std::vector<Need> needs{};
  std::vector<Op> ops{};
  std::size_t values = 0;  ///< number of values in the graph
};

/// "input", "parameter", "output".
std::string_view to_string(Slot::Kind);

}  // namespace fuse::runtime
