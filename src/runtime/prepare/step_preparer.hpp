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
                    d.calls, d.call_a, d.call_b, d.call_c, d.transpose_a, d.transpose_b, d.packed_b,
                    d.backwards, d.operand, d.result, d.epilogue, d.scale, d.algorithm, d.recorded);
}

class StepPreparer {
 public:
  /// Refers to its arguments; arguments of steps and GEMMs go to `out`. `texts`: step_text of each of the
  /// plan's steps; null: they are made.
  StepPreparer(Backend& backend, const Build& build, const schedule::Plan& plan, const Binding& binding,
               ValueLocations& locations, Prepared::Impl& out,
               const std::vector<std::string>* texts = nullptr)
      : backend_(backend),
        build_(build),
        plan_(plan),
        binding_(binding),
        locations_(locations),
        out_(out),
        texts_(texts) {}

  /// False for a step without work. Throws invalid_extent for one that no device can do; internal where the
  /// plan contradicts itself.
  bool prepare(const schedule::Step& step, ReadyStep& ready);
  /// As prepare, for a step of a run. Where the device reads an operand that parameters alone determine
  /// faster in another form, the setup makes that once. `alike`: one that does the same with other values,
  /// which is prepared; null: none is known.
  bool prepare_for_run(const schedule::Step& step, const ReadyStep* alike, ReadyStep& ready);
  /// The product of a step, without an algorithm.
  GemmDesc described(const schedule::Step& step, const schedule::GemmStep& work) const;
  /// What to call a step of the plan, and one of its setup.
  StepLabel label(std::size_t index, ReadyStep::Kind kind);
  StepLabel setup_label(std::size_t index, ReadyStep::Kind kind);

 private:
  using Step = schedule::Step;
  using ValueId = schedule::ValueId;

  bool prepare(const Step& step, const schedule::KernelStep& work, ReadyStep& ready);
  bool prepare(const Step& step, const schedule::GemmStep& work, ReadyStep& ready);
  bool prepare(const Step& step, const schedule::CopyStep& work, ReadyStep& ready);
  bool prepare(const Step& step, const schedule::MemsetStep& work, ReadyStep& ready);
  /// Numbers and the product are those of the step that is alike.
  void prepare_as(const ReadyStep& alike, const schedule::KernelStep& work, ReadyStep& ready);
  void prepare_as(const ReadyStep& alike, const schedule::GemmStep& work, ReadyStep& ready);
  /// Where to put what is added.
  ReadyArgument* add_arguments(ReadyStep& ready, std::size_t count);
  void add_arguments(ReadyStep& ready, std::initializer_list<ValueLocation> locations);
  /// Elements between matrices of the batch: 0 where one matrix serves all.
  std::int64_t stride(const Step& step, ValueId id, DType dtype, std::int64_t batch, std::int64_t rows,
                      std::int64_t columns, bool shareable) const;
  void scatter(const schedule::GemmStep& work, GemmDesc& desc) const;
  /// Whether b is the same in every run, and lies alike for all dims.
  bool is_fixed(const schedule::GemmStep& work) const;
  /// What was timed for these dims; null: nothing was, or the library's proposal was fastest.
  const std::string* recorded(const schedule::GemmStep& work) const;
  /// Where b lies in the device's own form; equal operands are packed once. No bytes: b stays as it is.
  ValueLocation packed_operand(const schedule::GemmStep& work, const GemmDesc& desc);
  /// Equal products share one.
  const Gemm* gemm(const schedule::Step& step, const schedule::GemmStep& work, const GemmDesc& desc);
  /// Throws invalid_argument, with the op and the line of the decisions, for an algorithm that the library
  /// does not propose.
  std::unique_ptr<Gemm> made(const schedule::Step& step, const schedule::GemmStep& work,
                             const GemmDesc& desc) const;

  Backend& backend_;
  const Build& build_;
  const schedule::Plan& plan_;
  const Binding& binding_;
  ValueLocations& locations_;
  Prepared::Impl& out_;
  const std::vector<std::string>* texts_;
  bool packs_ = false;     ///< steps of a run are prepared
  bool b_counts_ = false;  ///< what a product is may depend on which b it reads
  std::map<decltype(key_of(GemmDesc{})), const Gemm*> gemms_;
  std::map<std::pair<std::int32_t, std::int64_t>, int> readers_;  ///< of b, by where it lies
  /// By where b lies, and how.
  std::map<std::tuple<std::int32_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, DType>,
           ValueLocation>
      packed_;
};

}  // namespace fuse::runtime
