// Where a thread stands in a nest. SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/nest_position.hpp"

#include "support/catch.hpp"

namespace fuse::codegen {

using schedule::Level;
using schedule::Nest;

namespace {

Nest rows(std::vector<schedule::Split> splits) {
  return {.dims = {{'r', 300}, {'c', 1000}}, .splits = std::move(splits)};
}

const ThreadIndex at = {Dim::index("b", 1000), Dim::index("w", 8), Dim::index("l", 32)};

}  // namespace

TEST_CASE("a nest's position: rows by warps and lanes, elements by the other lanes", "[codegen]") {
  const Nest nest = rows({{'r', Level::grid},
                          {'r', Level::warp, 8},
                          {'r', Level::lane, 4},
                          {'c', Level::serial},
                          {'c', Level::lane, 8},
                          {'c', Level::vector, 4}});
  const NestPosition row = position_of(nest, 'r', at), element = position_of(nest, 'c', at);
  CHECK(row.first == at.block * 32 + at.warp * 4 + at.lane / 8);
  CHECK(row.in_block == at.warp * 4 + at.lane / 8);
  CHECK(element.first == at.lane % 8);  // in groups of 4
  CHECK(element.step.is(8));
  REQUIRE(element.leader.size() == 1);
  CHECK(element.leader[0].index == at.lane % 8);
  CHECK(varies_in_block(nest, 'r'));
  CHECK(units_of(nest, 'c', Level::lane) == 8);
}

TEST_CASE("a nest's position: blocks that share a row", "[codegen]") {
  for (const Level level : {Level::grid, Level::cluster}) {
    const Nest nest = rows({{'r', Level::grid},
                            {'c', Level::serial},
                            {'c', level, 4},
                            {'c', Level::warp, 8},
                            {'c', Level::lane, 32}});
    const NestPosition row = position_of(nest, 'r', at), element = position_of(nest, 'c', at);
    CHECK(row.first == at.block / 4);
    CHECK(row.in_block.is(0));
    CHECK(element.first == at.block % 4 * 256 + at.warp * 32 + at.lane);
    CHECK(element.step.is(1024));
    CHECK(element.leader.size() == 3);
    CHECK(!varies_in_block(nest, 'r'));
  }
}

TEST_CASE("a nest's position: columns go on by the blocks and warps that share the rows", "[codegen]") {
  const Nest nest = rows({{'r', Level::serial},
                          {'r', Level::grid, 132},
                          {'r', Level::warp, 4},
                          {'c', Level::serial},
                          {'c', Level::lane, 32}});
  const NestPosition row = position_of(nest, 'r', at);
  CHECK(row.first == at.block * 4 + at.warp);
  CHECK(row.step.is(528));
}

}  // namespace fuse::codegen
