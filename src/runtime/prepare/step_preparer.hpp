// StepPreparer: a plan's step with nothing left to decide: its grid, its arguments, its GEMM.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <tuple>

#include "runtime/execute/binding.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/value_locations.hpp"

namespace fuse::runtime {

/// Equal for products that one handle serves.
inline auto key_of(const GemmDesc& d) {
  return std::tuple(d.batch, d.m, d.n, d.k, d.stride_a, d.stride_b, d.stride_c, d.row_a, d.row_b, d.row_c,
                    d.calls, d.call_a, d.call_b, d.call_c, d.transpose_a, d.transpose_b, d.operand, d.result,
                    d.epilogue, d.scale, d.algorithm);
}

class StepPreparer {
 public:
  /// Refers to its arguments; arguments of steps and GEMMs go to `out`.
  StepPreparer(const Executable::Impl& executable, const schedule::Plan& plan, const Binding& binding,
               const ValueLocations& locations, Prepared::Impl& out)
      : executable_(executable), plan_(plan), binding_(binding), locations_(locations), out_(out) {}

  /// False for a step without work. Throws invalid_extent for one that no device can do; internal where the
  /// plan contradicts itself.
  bool prepare(const schedule::Step& step, ReadyStep& ready);
  /// "step 2, kernel 'ln_0' (reduce_sum in layer_norm.mean)"
  std::string label(std::size_t index, const schedule::Step& step, ReadyStep::Kind kind) const;

 private:
  using Step = schedule::Step;
  using ValueId = schedule::ValueId;

  bool prepare(const Step& step, const schedule::KernelStep& work, ReadyStep& ready);
  bool prepare(const Step& step, const schedule::GemmStep& work, ReadyStep& ready);
  bool prepare(const Step& step, const schedule::CopyStep& work, ReadyStep& ready);
  bool prepare(const Step& step, const schedule::MemsetStep& work, ReadyStep& ready);
  void add_arguments(ReadyStep& ready, std::initializer_list<ValueLocation> locations);
  /// Elements between matrices of the batch: 0 where one matrix serves all.
  std::int64_t stride(const Step& step, ValueId id, DType dtype, std::int64_t batch, std::int64_t rows,
                      std::int64_t columns, bool shareable) const;
  void scatter(const schedule::GemmStep& work, GemmDesc& desc) const;
  /// Equal products share one.
  const Gemm* gemm(const schedule::Step& step, const schedule::GemmStep& work, const GemmDesc& desc);
  /// Throws invalid_argument, with the op and the line of the decisions, for an algorithm that the library
  /// does not propose.
  std::unique_ptr<Gemm> made(const schedule::Step& step, const schedule::GemmStep& work,
                             const GemmDesc& desc) const;
  std::string text_of_another(const Step& step) const;

  const Executable::Impl& executable_;
  const schedule::Plan& plan_;
  const Binding& binding_;
  const ValueLocations& locations_;
  Prepared::Impl& out_;
  std::map<decltype(key_of(GemmDesc{})), const Gemm*> gemms_;
};

}  // namespace fuse::runtime
