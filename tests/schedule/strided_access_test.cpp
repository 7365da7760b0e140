// The strides of reshapes. SPDX-License-Identifier: Apache-2.0
#include "schedule/views/strided_access.hpp"

#include "support/catch.hpp"

namespace fuse::test {
namespace {

using Dims = std::vector<Dim>;

TEST_CASE("a reshape divides and joins axes", "[schedule][strides]") {
  const analysis::Facts facts;
  const Dim n = Dim::symbol("N", {1, 64, 8});
  const auto text = [&](const std::vector<schedule::StridedDim>& from, const Dims& to) {
    const auto dims = schedule::reshaped(from, to, facts);
    return dims ? schedule::strides_text(*dims) : "none";
  };
  CHECK(schedule::strides_text(schedule::dense({2, 3, n})) == "3 * N, N, 1");
  // Dense dims merge and split.
  CHECK(text(schedule::dense({2, 3, n}), {6, n}) == "N, 1");
  CHECK(text(schedule::dense({6, n}), {2, 3, n}) == "3 * N, N, 1");
  CHECK(text(schedule::dense({2, 3, 4}), {4, 6}) == "6, 1");
  // A slice of rows: the batch merges; rows and columns are one dim of two axes.
  CHECK(text({{{2, 768}}, {{3, 256}}, {{n, 4}}, {{4, 1}}}, {6, n, 4}) == "256, 4, 1");
  CHECK(text({{{2, 256}}, {{n, 4}}, {{4, 1}}}, {2 * n, 4}) == "256 x 4, 1");
  CHECK(text({{{4, 100}}, {{6, 1}}}, {24}) == "100 x 1");
  CHECK(text({{{4, 100}}, {{6, 1}}}, {6, 4}) == "none");
  // Dims of 1 come and go.
  CHECK(text({{{1, 7}}, {{4, 100}}, {{6, 1}}}, {4, 1, 6, 1}) == "100, 0, 1, 0");
  // Repeated matrices stay so.
  CHECK(text({{{2, 1024}}, {{4, 0}}, {{n, 16}}, {{16, 1}}}, {2, 4, 1, n, 16}) == "1024, 0, 0, 16, 1");
  CHECK(text({{{2, 1024}}, {{4, 0}}, {{n, 16}}, {{16, 1}}}, {8, n, 16}) == "1024 x 0, 16, 1");
}

}  // namespace
}  // namespace fuse::test
