// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/gemm_captures.hpp"

#include <algorithm>
#include <utility>

namespace fuse::runtime {
namespace {

bool same_addresses(const GemmWork& x, const GemmWork& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.scratch == y.scratch && x.extra == y.extra;
}

}  // namespace

std::size_t GemmCaptures::index_of(const GemmWork& work) const noexcept {
  std::size_t index = 0;
  while (index < most && !(captures_[index].graph && same_addresses(captures_[index].work, work))) ++index;
  return index;
}

CUgraph GemmCaptures::use(const GemmWork& work) noexcept {
  const std::size_t index = index_of(work);
  if (index == most) return nullptr;
  const auto found = captures_.begin() + static_cast<std::ptrdiff_t>(index);
  std::rotate(captures_.begin(), found, found + 1);
  return captures_.front().graph;
}

CUgraph GemmCaptures::keep(const GemmWork& work, CUgraph captured) noexcept {
  std::rotate(captures_.begin(), captures_.end() - 1, captures_.end());
  captures_.front().work = work;
  return std::exchange(captures_.front().graph, captured);
}

void GemmCaptures::give_back(const Driver& driver) noexcept {
  for (Capture& capture : captures_) {
    if (CUgraph const graph = std::exchange(capture.graph, nullptr)) driver.p_cuGraphDestroy(graph);
  }
}

}  // namespace fuse::runtime
