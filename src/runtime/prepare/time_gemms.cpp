// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/access.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/gemm_buckets.hpp"
#include "runtime/prepare/step_preparer.hpp"
#include "runtime/prepare/value_locations.hpp"

namespace fuse {
namespace runtime {
namespace {

using schedule::GemmStep;

/// The powers of two in a range, or its least value; no more than `most`, evenly chosen.
std::vector<std::int64_t> sizes_in(const DimRange& range, std::size_t most) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= range.max && size > 0; size *= 2) {
    if (size >= range.min) sizes.push_back(size);
    if (size > range.max / 2) break;
  }
  if (sizes.empty()) sizes.push_back(range.min);
  if (sizes.size() <= most) return sizes;
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < most; ++i)
    chosen.push_back(sizes[most == 1 ? sizes.size() / 2 : i * (sizes.size() - 1) / (most - 1)]);
  return chosen;
}

std::vector<DimValues> usual_dims(const Signature& signature) {
  constexpr double most_combinations = 64;
  std::vector<DimValues> all{{}};
  const auto each = static_cast<std::size_t>(
      std::pow(most_combinations, 1 / std::max<double>(1, static_cast<double>(signature.symbols.size()))));
  for (const ir::Symbol& symbol : signature.symbols) {
    std::vector<DimValues> longer;
    for (const DimValues& dims : all) {
      for (const std::int64_t size : sizes_in(symbol.range, std::max<std::size_t>(each, 1))) {
        longer.push_back(dims);
        longer.back()[symbol.name] = size;
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// The elements from the first to the last of an operand.
std::int64_t spanned(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t batch,
                     std::int64_t stride, std::int64_t calls, std::int64_t call) {
  return (calls - 1) * call + (batch - 1) * stride + (rows - 1) * row + columns;
}

/// The operands of a product that is timed.
struct Operands {
  explicit Operands(const GemmDesc& d) {
    const auto elements_a = spanned(d.transpose_a ? d.k : d.m, d.transpose_a ? d.m : d.k, row_of_a(d),
                                    d.batch, d.stride_a, d.calls, d.call_a);
    const auto elements_b = spanned(d.transpose_b ? d.n : d.k, d.transpose_b ? d.k : d.n, row_of_b(d),
                                    d.batch, d.stride_b, d.calls, d.call_b);
    const auto elements_c = spanned(d.m, d.n, row_of_c(d), d.batch, d.stride_c, d.calls, d.call_c);
    const auto operand = static_cast<std::int64_t>(size_of(d.operand)),
               result = static_cast<std::int64_t>(size_of(d.result));
    bytes = {elements_a * operand, elements_b * operand, elements_c * result, elements_c * result};
  }
  std::int64_t total() const { return bytes[0] + bytes[1] + bytes[2] + bytes[3]; }
  std::array<std::int64_t, 4> bytes{};  // a, b, c, and what the epilogue adds
};

struct Fastest {
  std::string algorithm{};  ///< empty: the library's first proposal
  std::string text{};
  int algorithms = 0;
  double proposed = 0, seconds = 0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls of all algorithms take turns, so that a slow moment is no single one's.
Fastest fastest_of(const Device& device, const GemmDesc& desc, const Operands& operands,
                   const GemmTimingOptions& options) {
  Backend& backend = *backend_of(device);
  std::vector<std::unique_ptr<Gemm>> gemms;
  std::int64_t scratch = 0;
  for (int i = 0; i < backend.gemm_algorithms(); ++i) {
    GemmDesc each = desc;
    each.algorithm = static_cast<std::uint32_t>(i);
    try {
      gemms.push_back(backend.prepare_gemm(each));
    } catch (const Error& error) {
      if (i == 0 || error.code() != ErrorCode::invalid_argument) throw;
      break;  // the library proposes no more
    }
    scratch = std::max(scratch, gemms.back()->workspace_bytes());
  }
  Fastest best{.text = gemms.front()->algorithm(), .algorithms = static_cast<int>(gemms.size())};
  if (gemms.size() == 1) return best;
  const std::unique_ptr<Queue> queue = backend.create_queue();
  std::vector<Buffer> memory;
  for (const std::int64_t bytes : operands.bytes) {
    memory.push_back(device.allocate(bytes));
    backend.memset(*queue, memory.back().view().address, 0, bytes).throw_if_failed();
  }
  memory.push_back(device.allocate(scratch));
  const auto address = [&](std::size_t i) { return memory[i].view().address; };
  const std::unique_ptr<Event> start = backend.create_event(), end = backend.create_event();
  const auto seconds_of = [&](const Gemm& gemm) {
    backend.record(*queue, *start).throw_if_failed();
    gemm.run(*queue, address(0), address(1), address(2), address(4), address(3)).throw_if_failed();
    backend.record(*queue, *end).throw_if_failed();
    double seconds = 0;
    backend.elapsed(*start, *end, seconds).throw_if_failed();
    return seconds;
  };
  for (const auto& gemm : gemms) seconds_of(*gemm);  // the first call of a kernel loads it
  std::vector<std::vector<double>> seconds(gemms.size());
  for (int run = 0; run < options.runs; ++run)
    for (std::size_t i = 0; i < gemms.size(); ++i) seconds[i].push_back(seconds_of(*gemms[i]));
  queue->synchronize().throw_if_failed();
  best.proposed = best.seconds = median(seconds[0]);
  for (std::size_t i = 1; i < gemms.size(); ++i) {
    const double each = median(seconds[i]);
    if (each > (1 - options.least_gain) * best.proposed || each >= best.seconds) continue;
    best.seconds = each;
    best.algorithm = gemms[i]->recorded();
    best.text = gemms[i]->algorithm();
  }
  return best;
}

bool has_products(const GemmDesc& d) { return std::min({d.batch, d.calls, d.m, d.n, d.k}) > 0; }

/// Times the GEMMs of one build, as far as its dims come.
class BuildTimer {
 public:
  BuildTimer(const Executable::Impl& executable, const Build& build, const GemmTimingOptions& options)
      : executable_(executable), build_(build), options_(options) {}

  void time(const Binding& binding, std::vector<GemmTiming>& timings) {
    const schedule::Plan& plan = build_.program->plan;
    std::vector<std::int64_t> slots;
    for (const Slot& slot : build_.program->signature.slots)
      slots.push_back(bytes_of(slot.dtype, binding.shape(slot.dims)));
    ValueLocations locations(plan, binding, slots);
    Prepared::Impl unused;
    const StepPreparer preparer(*backend_of(executable_.device), build_, plan, binding, locations, unused);
    for (const schedule::Step& step : plan.steps) {
      const auto* const gemm = std::get_if<GemmStep>(&step.work);
      if (!gemm || gemm->algorithm.line != 0) continue;
      TimedExtents timed;
      std::vector<int> buckets;
      for (const Dim& extent : symbolic_extents(*gemm)) {
        timed.values.push_back(binding.value(extent));
        buckets.push_back(bucket_of(timed.values.back()));
      }
      const std::string text = gemm_text(*gemm);
      if (!known_.emplace(text, buckets).second) continue;
      GemmDesc desc = preparer.described(step, *gemm);
      if (!has_products(desc)) continue;
      desc.epilogue = gemm->epilogue;
      desc.scale = gemm->scale;
      const Operands operands(desc);
      if (operands.total() > options_.most_bytes) continue;
      const Fastest fastest = fastest_of(executable_.device, desc, operands, options_);
      timed.algorithm = fastest.algorithm;
      timed_[text].push_back(std::move(timed));
      if (fastest.algorithms < 2) continue;
      timings.push_back({.gemm = text,
                         .dims = binding.values(),
                         .algorithms = fastest.algorithms,
                         .proposed_seconds = fastest.proposed,
                         .seconds = fastest.seconds,
                         .algorithm = fastest.text,
                         .is_proposal = fastest.algorithm.empty()});
      if (options_.progress) options_.progress(timings.back());
    }
  }

  /// The build with what was found; without kernels' functions, as make_executable wants it.
  Build result(const std::string& library) const {
    auto program = std::make_shared<Program>(*build_.program);
    program->plan.algorithms.clear();
    std::map<std::string, std::optional<std::uint32_t>> tables;
    for (schedule::Step& step : program->plan.steps) {
      auto* const gemm = std::get_if<GemmStep>(&step.work);
      if (!gemm) continue;
      const std::string text = gemm_text(*gemm);
      const auto [table, added] = tables.try_emplace(text);
      if (const auto found = timed_.find(text); added && found != timed_.end()) {
        schedule::GemmAlgorithms made = algorithms_by_bucket(symbolic_extents(*gemm), found->second);
        made.library = library;
        const bool proposals = made.recorded.size() == 1 && made.recorded[0].empty();
        if (!proposals) {
          table->second = static_cast<std::uint32_t>(program->plan.algorithms.size());
          program->plan.algorithms.push_back(std::move(made));
        }
      }
      gemm->algorithms = gemm->algorithm.line == 0 ? table->second : std::nullopt;
    }
    return {.program = std::move(program), .module = build_.module};
  }

 private:
  const Executable::Impl& executable_;
  const Build& build_;
  const GemmTimingOptions& options_;
  std::set<std::pair<std::string, std::vector<int>>> known_;
  std::map<std::string, std::vector<TimedExtents>> timed_;  // by gemm_text
};

void check(const GemmTimingOptions& options) {
  const auto refuse = [](const std::string& message) {
    throw Error({.code = ErrorCode::invalid_argument, .message = "time_gemms: " + message});
  };
  if (options.runs < 1 || options.runs > 1000)
    refuse(fmt::format("runs is {}, and has to be 1 to 1000", options.runs));
  if (!(options.least_gain >= 0 && options.least_gain < 1))
    refuse(fmt::format("least_gain is {}, and has to be at least 0 and less than 1", options.least_gain));
  if (options.most_bytes < 0)
    refuse(fmt::format("most_bytes is {}, and has to be at least 0", options.most_bytes));
}

}  // namespace
}  // namespace runtime

inline namespace v0 {

TimedGemms time_gemms(const Executable& executable, const GemmTimingOptions& options) {
  using namespace runtime;
  check(options);
  const Executable::Impl& impl = *impl_of(executable);
  Backend& backend = *backend_of(impl.device);
  const Signature& signature = impl.signature();
  const std::vector<DimValues> all = options.dims.empty() ? usual_dims(signature) : options.dims;
  const bool has_choice = impl.device.kind() != DeviceKind::reference && backend.gemm_algorithms() > 1;
  std::vector<BuildTimer> timers;
  for (const Build& build : impl.builds) timers.emplace_back(impl, build, options);
  std::vector<GemmTiming> timings;
  for (const DimValues& dims : all) {
    std::optional<Binding> binding;
    try {
      binding.emplace(signature, dims);
      check_guards(signature.guards, *binding);
      check_extents(signature, *binding);
    } catch (const Error&) {
      if (options.dims.empty()) continue;  // one of ours that the graph does not allow
      throw;
    }
    if (!has_choice) continue;
    timers[version_at(impl.builds.front().program->builds, *binding)].time(*binding, timings);
  }
  if (!has_choice) return {executable, {}};
  std::vector<Build> builds;
  const std::string library = backend.gemm_library();
  for (const BuildTimer& timer : timers) builds.push_back(timer.result(library));
  return {make_executable(impl.device, impl.origin, std::move(builds)), std::move(timings)};
}

}  // namespace v0
}  // namespace fuse
