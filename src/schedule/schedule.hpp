// Schedule: how a piece runs. make_schedule is pure; every open decision is in Choices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ir/graph.hpp"
#include "schedule/held.hpp"
#include "schedule/partition.hpp"
#include "schedule/target.hpp"

namespace fuse::schedule {

/// How results and the elements they reduce are laid over threads.
enum class Mapping : std::uint8_t {
  element,      ///< a thread an element
  row_warp,     ///< a warp a result: its lanes walk the reduced elements
  row_block,    ///< a block a result
  column_tile,  ///< 32 results side by side a block; the warps share the reduced elements
  split,        ///< several blocks a result, then a second launch combines their parts in fixed order
  scan_warp,    ///< a warp a row of a scan
  scan_thread,  ///< a thread a row of a scan
};
std::string_view to_string(Mapping);

/// Every open decision of one piece: printable, comparable, part of the kernel's key.
struct Choices {
  Mapping mapping = Mapping::element;
  int block_threads = 256;
  int parts = 1;  ///< split: blocks a result
  int hold = 0;   ///< 32-bit registers in which a thread may hold elements from pass to pass (held.hpp)
  bool operator==(const Choices&) const = default;
  std::string to_string() const;
};

/// One launch of a piece.
struct KernelSchedule {
  enum class Role : std::uint8_t { whole, partial, combine };
  Role role = Role::whole;
  Mapping mapping = Mapping::element;
  Dim results{};  ///< elements stored (partial: results * parts)
  Dim reduced{};  ///< elements that each combines; 1 for element
  Dim grid{};     ///< blocks
  int block_threads = 256;
  DType index_type = i64;
};

struct Schedule {
  Piece piece{};
  Choices choices{};
  std::vector<KernelSchedule> kernels{};  ///< one, or partial and combine
  /// What a partial launch leaves for the combining one: element types, each `scratch_elements` long.
  std::vector<DType> scratch{};
  Dim scratch_elements = 0;
  /// What threads hold of a row from pass to pass; each walks `trips` elements of it. 0: in no fixed number.
  std::vector<Held> held{};
  int trips = 0;
};

/// The cost model's choice for a kernel piece.
Choices default_choices(const ir::Graph&, const Piece&, const Target&);
/// What a block combines its warps' parts of reductions in.
std::int64_t shared_bytes(const ir::Graph&, const Piece&, const Choices&);
/// The launches of a kernel piece, their index types left open.
std::vector<KernelSchedule> launches(const ir::Graph&, const Piece&, const Choices&);
/// Pure: same arguments, same schedule. The piece is a kernel piece; the choices fit it.
Schedule make_schedule(const ir::Graph&, const Piece&, const Choices&, const Target&,
                       const analysis::Facts& facts = analysis::Facts());
std::string print(const ir::Graph&, const Schedule&);
/// Throws an internal Error unless launches fit the target and the mapping fits the piece.
void verify(const ir::Graph&, const Schedule&, const Target&);

}  // namespace fuse::schedule
