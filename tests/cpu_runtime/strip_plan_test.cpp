// How GEMMs of the cpu device are cut is what tests/golden/cpu/strip_plans.txt says: a plan that became worse
// is still right, so that no other test would notice it. SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/strip_plan.hpp"

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/golden.hpp"

namespace fuse::test {
namespace {

using runtime::GemmDesc;
using runtime::cpu::Side;
using runtime::cpu::StripPlan;

std::string print(const Side& side) {
  return fmt::format("{}{} by {}", side.is_b ? 'b' : 'a', side.depth_lies_apart ? " turned" : "", side.row);
}

std::string print(const StripPlan& p) {
  std::string text = fmt::format("{} x {}", print(p.few), print(p.many));
  for (const auto& [name, is] : {std::pair{"along", p.along},
                                 {"packs few", p.packs_few},
                                 {"packs many", p.packs_many},
                                 {"in place", p.in_place},
                                 {"packed before", p.packed_before}}) {
    if (is) text += fmt::format(", {}", name);
  }
  return text + fmt::format(
                    "; panels {} tile {} x {}, {} x {} x {} tiles, {} parts of {}, step {}; {} units by {}; "
                    "room {} {} {} {}, "
                    "sums {}",
                    p.panel_columns, p.tile_rows, p.tile_columns, p.down, p.across, p.matrices, p.parts,
                    p.part_depth, p.step, p.units, p.units_of_chunk, p.few_room(), p.many_room(),
                    p.turning_room(), p.sums_room(), p.partial_sums());
}

TEST_CASE("plans of the cpu device's GEMMs are as committed", "[cpu][golden]") {
  constexpr std::int64_t sizes[] = {1, 4, 5, 16, 17, 65, 128, 300, 1024, 3072};
  std::vector<std::string> lines;
  std::size_t number = 0;
  for (const std::int64_t m : sizes) {
    for (const std::int64_t n : sizes) {
      for (const std::int64_t k : {1, 129, 768, 4096}) {
        // The other properties go round, so that each meets each size.
        const std::size_t at = number++;
        GemmDesc d{.batch = at % 5 == 0 ? 12 : 1, .m = m, .n = n, .k = k};
        d.transpose_a = at % 3 == 1;
        d.transpose_b = at % 4 == 1;
        d.packed_b = at % 7 == 6 && d.batch == 1;
        d.operand = at % 2 == 0 ? f32 : bf16;
        d.result = at % 11 == 10 ? f32 : d.operand;
        if (at % 13 == 12) d.row_a = 2 * runtime::row_of_a(d);
        if (at % 17 == 16) d.row_b = 2 * runtime::row_of_b(d);
        const std::int64_t columns = at % 6 == 5 ? 16 : 64;
        std::string takes;  // strips and panels: without OpenBLAS, and with it
        for (const bool openblas : {false, true}) {
          takes += runtime::cpu::takes_strips(d, openblas, columns) ? 's' : '-';
          takes += runtime::cpu::takes_panels(d, openblas, columns) ? 'p' : '-';
        }
        const runtime::cpu::PanelLayout layout = runtime::cpu::panel_layout_of(k, n, columns);
        lines.push_back(fmt::format("{}x {} {}x{}x{} {}{} {}: {}; pieces of {}", d.batch,
                                    to_string(d.operand), m, n, k, d.packed_b ? "packed " : "", takes,
                                    runtime::cpu::prefers_panels(d) ? "packs" : "reads",
                                    print(runtime::cpu::strip_plan_of(d, columns)), layout.piece));
      }
    }
  }
  check_golden_lines("cpu/strip_plans.txt", lines);
}

}  // namespace
}  // namespace fuse::test
