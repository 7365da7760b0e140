// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/philox.hpp"
#include "eval/eval_step.hpp"
#include "eval/parallel_for.hpp"

namespace fuse::runtime::reference {

ReferenceTensor evaluate_random(const Step& step) {
  const std::int64_t seed = step.operand(0).integer()[0], offset = step.operand(1).integer()[0];
  const std::int64_t stream = ir::attr<ir::RandomAttr>(step.node).stream;
  ReferenceTensor result = step.make();
  const bool single = step.dtype() == f32;
  step.with_storage(step.dtype(), [&]<class T>() {
    const std::span<T> out = result.elements<T>();
    parallel_for(out.size(), 1U << 14, [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        out[i] = static_cast<T>(single ? uniform_f32(seed, offset, stream, at)
                                       : uniform_f64(seed, offset, stream, at));
      }
    });
  });
  return result;
}

}  // namespace fuse::runtime::reference
