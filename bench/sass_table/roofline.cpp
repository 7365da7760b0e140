// SPDX-License-Identifier: Apache-2.0
#include "roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"
#include "sass_table/sass/executions.hpp"
#include "target/residency.hpp"

namespace fuse::bench::sass {

struct Counter::Compilation {
  std::vector<runtime::CompiledKernel> kernels;
  Disassembly disassembly;
};

namespace {

constexpr double lanes = 32;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

void keep_files(const std::string& folder, const codegen::Source& source, int arch, const std::string& sass) {
  const std::string name =
      fmt::format("{}/{}-{:08x}.sm_{}", folder, source.name,
                  static_cast<std::uint32_t>(std::hash<std::string>()(source.body)), arch);
  std::ofstream(name + ".cu") << source.text();
  std::ofstream(name + ".sass") << sass;
}

/// The number of a general register, "R8" of "R8.64" or "[R8+0x10]"; -1 without one.
int register_of(std::string_view operand) {
  for (std::size_t at = 0; at + 1 < operand.size(); ++at) {
    if (operand[at] != 'R' || (at > 0 && is_word(operand[at - 1]))) continue;
    if (!std::isdigit(static_cast<unsigned char>(operand[at + 1]))) continue;
    return std::stoi(std::string(operand.substr(at + 1)));
  }
  return -1;
}

/// Bytes of a thread that are loaded before the first of them is used: the most over the code.
std::int64_t bytes_before_use(const std::vector<WeightedInstruction>& code) {
  std::set<int> loaded;
  std::int64_t bytes = 0, most = 0;
  for (const WeightedInstruction& each : code) {
    const Instruction& one = each.instruction;
    if (each.weight == 0) continue;
    const bool loads = loads_global(one);
    for (std::size_t i = loads ? 1 : 0; i < one.operands.size(); ++i) {
      if (!loaded.contains(register_of(one.operands[i]))) continue;
      loaded.clear();
      bytes = 0;
    }
    if (!loads) continue;
    bytes += access_bytes(one);
    most = std::max(most, bytes);
    const int first = register_of(one.operands[0]);
    for (int i = 0; i < std::max(1, access_bytes(one) / 4); ++i) loaded.insert(first + i);
  }
  return most;
}

/// The declared hints: versions of a kernel have others.
DimValues hints_of(const Compiled& compiled) {
  DimValues hints;
  for (const ir::Symbol& symbol : compiled.graph.symbols)
    hints.emplace(symbol.name, Dim::symbol(symbol.name, symbol.range).hint());
  return hints;
}

std::int64_t extent_at(const Dim& dim, const DimValues& dims) {
  if (dim.is_constant()) return dim.constant();
  return dim.evaluate([&](std::string_view name) { return dims.at(name); });
}

/// The plan that these dims take, of the versions of its segments.
schedule::Plan plan_at(const schedule::Plan& plan, const DimValues& dims) {
  std::vector<std::uint32_t> taken;
  for (const schedule::VersionTable& table : plan.tables)
    taken.push_back(version_for(table, [&](const Dim& dim) { return extent_at(dim, dims); }));
  return with_versions(plan, taken);
}

class CaseCounter {
 public:
  CaseCounter(const Compiled& compiled, const DimValues& dims, const Gpu& gpu)
      : compiled_(compiled), plan_(plan_at(compiled.plan, dims)), dims_(dims), gpu_(gpu) {}

  const schedule::Plan& plan() const { return plan_; }

  std::int64_t at_dims(const Dim& dim) const { return extent_at(dim, dims_); }

  std::int64_t elements_of(const schedule::PlanValue& value) const {
    std::int64_t elements = 1;
    for (const Dim& dim : value.dims) elements *= at_dims(dim);
    return elements;
  }
  std::int64_t bytes_of(const schedule::PlanValue& value) const {
    return elements_of(value) * static_cast<std::int64_t>(size_of(value.dtype));
  }

  /// Elements and bytes of the case: of the values that kernels touch.
  void measure(CaseCount& result) const {
    using Kind = schedule::PlanValue::Kind;
    const auto& values = plan_.values;
    std::vector<bool> read(values.size()), written(values.size()), by_gemm(values.size()),
        of_gemm(values.size());
    for (const schedule::Step& step : plan_.steps) {
      const bool gemm = std::holds_alternative<schedule::GemmStep>(step.work);
      for (const schedule::ValueId id : step.reads) (gemm ? by_gemm : read)[id] = true;
      for (const schedule::ValueId id : step.writes) (gemm ? of_gemm : written)[id] = true;
    }
    for (std::size_t id = 0; id < values.size(); ++id) {
      const Kind kind = values[id].kind;
      const bool given =
          kind == Kind::input || kind == Kind::parameter || kind == Kind::packed || of_gemm[id];
      const bool asked_for = kind == Kind::output || by_gemm[id];
      const bool reads = given && read[id], writes = asked_for && written[id];
      if (reads || writes) result.elements = std::max(result.elements, elements_of(values[id]));
      result.floor_bytes += (reads + writes) * bytes_of(values[id]);
    }
  }

  KernelCount count(const schedule::Step& step, const schedule::KernelStep& launch,
                    const Disassembly& disassembly, const runtime::CompiledKernel& compiled,
                    double elements) const {
    const kernel::Kernel& kernel = compiled_.kernels.at(launch.kernel);
    const codegen::Source& source = compiled_.source;
    const std::string text = source.text();
    DimValues dims;
    for (std::size_t i = 0; i < kernel.extents.size(); ++i)
      dims.emplace(kernel.extents[i].name(), at_dims(launch.extents.at(i)));
    const std::size_t start = source.starts.at(launch.kernel);
    const std::size_t end =
        launch.kernel + 1 < source.starts.size() ? source.starts[launch.kernel + 1] : source.body.size();
    const int first_line =
        source.body_line() +
        static_cast<int>(
            std::count(source.body.begin(), source.body.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
    const Executions executions =
        executions_of(kernel, std::string_view(source.body).substr(start, end - start), first_line, dims,
                      at_dims(launch.grid));
    const auto functions = disassembly.kernels.find(kernel.name);
    if (functions == disassembly.kernels.end())
      throw std::runtime_error("nvdisasm printed no kernel " + kernel.name);
    const Weights weights =
        weights_of(functions->second, executions, text, target_profile(gpu_.profile).arch);

    KernelCount result;
    result.name = kernel.name;
    result.grid = at_dims(launch.grid);
    result.threads = kernel.block_threads;
    result.registers = compiled.registers;
    result.shared_bytes = compiled.shared_bytes;
    result.spilled_bytes = compiled.spill_load_bytes + compiled.spill_store_bytes;
    for (const schedule::ValueId id : step.reads) result.read_bytes += bytes_of(plan_.values[id]);
    result.moved_bytes = result.read_bytes;
    for (const schedule::ValueId id : step.writes) result.moved_bytes += bytes_of(plan_.values[id]);
    result.slow = weights.slow;
    result.waits = weights.waits;
    place(result);
    const double scale = static_cast<double>(executions.warps) * lanes / elements;
    add_up(result, weights, scale);
    add_accesses(result, weights, executions, launch, scale);
    result.bytes_in_flight = bytes_before_use(weights.code) * result.threads * resident(result);
    return result;
  }

  /// Seconds of one kernel; sass_table prints the formula.
  double seconds(const KernelCount& kernel, double elements) const {
    // Bytes of loads that have to be under way on a multiprocessor, so that the kernel's bytes move at the
    // rate of a copy.
    const double wanted = gpu_.copy / gpu_.sms * latency * static_cast<double>(kernel.read_bytes) /
                          static_cast<double>(std::max<std::int64_t>(1, kernel.moved_bytes));
    const double waiting =
        kernel.bytes_in_flight > 0 ? std::max(1.0, wanted / static_cast<double>(kernel.bytes_in_flight)) : 1;
    const double memory = static_cast<double>(kernel.moved_bytes) / gpu_.copy * waiting;
    const double issue = kernel.cycles * elements / (lanes * sub_partitions * gpu_.sms * gpu_.clock);
    // Without barriers the warps of a block overlap too.
    const double beside = kernel.barriers ? static_cast<double>(resident(kernel))
                                          : static_cast<double>(resident(kernel)) * kernel.threads / lanes;
    const double rounds = std::ceil(kernel.waves) / std::max(kernel.waves, 1e-9);
    return (std::max(memory, issue) + std::min(memory, issue) / std::max(1.0, beside)) *
           std::max(1.0, rounds);
  }

 private:
  /// Blocks that an SM has at a time, where there are few in all.
  std::int64_t resident(const KernelCount& kernel) const {
    return std::min<std::int64_t>(kernel.blocks_per_sm, (kernel.grid + gpu_.sms - 1) / gpu_.sms);
  }

  void place(KernelCount& kernel) const {
    const Target target = target_profile(gpu_.profile);
    kernel.blocks_per_sm = schedule::blocks_per_sm({.blocks = 1,
                                                    .threads = kernel.threads,
                                                    .registers = kernel.registers,
                                                    .shared_bytes = kernel.shared_bytes},
                                                   target);
    const std::int64_t slots = std::max<std::int64_t>(1, resident(kernel) * gpu_.sms);
    kernel.waves = static_cast<double>(kernel.grid) / static_cast<double>(slots);
    const double rest = kernel.waves - std::floor(kernel.waves);
    kernel.last_wave = rest > 0 ? rest : 1;
  }

  void add_up(KernelCount& kernel, const Weights& weights, double scale) const {
    const int arch = target_profile(gpu_.profile).arch;
    for (const WeightedInstruction& one : weights.code) {
      const Cost cost = cost_of(one.instruction, arch);
      kernel.slots += one.weight * scale;
      kernel.busy[static_cast<std::size_t>(cost.pipe)] += one.weight * scale * cost.cycles;
      // The heavy half of a pipe of two halves.
      if (cost.pipe == Pipe::fma_heavy)
        kernel.busy[static_cast<std::size_t>(Pipe::fma)] += one.weight * scale * cost.cycles / 2;
      kernel.barriers = kernel.barriers || one.instruction.base() == "BAR";
    }
    kernel.cycles = kernel.slots;
    for (std::size_t i = 0; i < pipes; ++i) {
      if (kernel.busy[i] <= kernel.cycles) continue;
      kernel.cycles = kernel.busy[i];
      kernel.bound = static_cast<Pipe>(i);
    }
  }

  void add_accesses(KernelCount& kernel, const Weights& weights, const Executions& executions,
                    const schedule::KernelStep& launch, double scale) const {
    std::vector<std::string> buffers;
    for (const codegen::KernelParam& param : compiled_.source.kernels[launch.kernel].params) {
      if (param.kind == codegen::KernelParam::Kind::buffer) buffers.push_back(param.name);
    }
    std::vector<Accessed> counted(buffers.size());
    bool conditional = false;  // some accesses are issued by warps that do nothing with them
    for (const WeightedInstruction& one : weights.code) {
      if (one.buffer < 0 || one.weight == 0) continue;
      const auto id = static_cast<std::size_t>(one.buffer);
      const schedule::PlanValue& value = plan_.values[launch.buffers.at(id)];
      const std::int64_t row = value.dims.empty() ? 1 : at_dims(value.dims.back());
      const Access access{.buffer = buffers[id],
                          .stores = stores_global(one.instruction),
                          .bytes = access_bytes(one.instruction),
                          .extent_bytes = bytes_of(value),
                          .could_be_wide = row * static_cast<std::int64_t>(size_of(value.dtype)) % 16 == 0};
      conditional = conditional || !one.instruction.predicate.empty();
      (access.stores ? counted[id].stored : counted[id].loaded) += one.weight * access.bytes;
      auto at = std::find_if(kernel.accesses.begin(), kernel.accesses.end(), [&](const Access& other) {
        return other.buffer == access.buffer && other.stores == access.stores && other.bytes == access.bytes;
      });
      if (at == kernel.accesses.end()) at = kernel.accesses.insert(at, access);
      at->issues += one.weight * scale;
    }
    for (std::size_t i = 0; i < buffers.size(); ++i)
      check(kernel, buffers[i], executions.accessed.at(i), counted[i], conditional);
  }

  /// The weights fit the kernel IR where both store the same bytes, and the SASS loads no more: compilers
  /// drop loads, of what they hold already, but no stores.
  static void check(const KernelCount& kernel, const std::string& buffer, const Accessed& expected,
                    const Accessed& counted, bool conditional) {
    constexpr double close = 0.01;
    const bool stores = conditional ? counted.stored >= expected.stored * (1 - close)
                                    : std::fabs(counted.stored - expected.stored) <= expected.stored * close;
    const bool loads = conditional || counted.loaded <= expected.loaded * (1 + close);
    if (stores && loads) return;
    throw std::runtime_error(
        fmt::format("{}: a thread stores {:.5g} and loads {:.5g} bytes of {} by the SASS, {:.5g} and {:.5g} "
                    "by the kernel IR: the "
                    "weights of its loops are not understood",
                    kernel.name, counted.stored, counted.loaded, buffer, expected.stored, expected.loaded));
  }

  const Compiled& compiled_;
  const schedule::Plan plan_;
  const DimValues& dims_;
  const Gpu& gpu_;
};

}  // namespace

const KernelCount& CaseCount::longest() const {
  return *std::max_element(kernels.begin(), kernels.end(),
                           [](const KernelCount& a, const KernelCount& b) { return a.cycles < b.cycles; });
}

std::shared_ptr<const Counter::Compilation> Counter::compilation_of(const codegen::Source& source, int arch) {
  const std::string key = fmt::format("{} {}", arch, source.text());
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = known_.find(key); at != known_.end()) return at->second;
  }
  const runtime::Cubin cubin = runtime::compile_to_cubin(source, arch, 1);
  const std::string text = nvdisasm_.disassemble(cubin.image);
  if (!keep.empty()) keep_files(keep, source, arch, text);
  auto made = std::make_shared<const Compilation>(Compilation{cubin.kernels, parse_disassembly(text)});
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(made)).first->second;
}

void set_up_counting() {
  ::setenv("FUSE_CACHE", "0", 0);
  ::setenv("FUSE_KEEP", "/tmp", 1);  // nothing is written there
}

CaseCount Counter::count(const std::string& name, const Graph& graph, const Gpu& gpu) {
  const Target target = target_profile(gpu.profile);
  check_arch(target.arch);
  PipelineOptions options = pipeline_options({});
  options.threads = 1;
  const Compiled compiled = run_pipeline(ir_of(graph), target, options);
  return count(name, compiled, hints_of(compiled), gpu);
}

CaseCount Counter::count(const std::string& name, const CompiledBuilds& builds, const DimValues& dims,
                         const Gpu& gpu) {
  const std::uint32_t taken =
      version_for(builds.regions.table, [&](const Dim& dim) { return extent_at(dim, dims); });
  return count(name, builds.each.at(taken), dims, gpu);
}

CaseCount Counter::count(const std::string& name, const Compiled& compiled, const DimValues& dims,
                         const Gpu& gpu) {
  const CaseCounter counter(compiled, dims, gpu);
  const std::vector<schedule::Step>& steps = counter.plan().steps;
  const bool launches = std::any_of(steps.begin(), steps.end(), [](const schedule::Step& step) {
    return std::holds_alternative<schedule::KernelStep>(step.work);
  });
  if (!launches) throw std::runtime_error(name + " has no kernel");
  CaseCount result;
  result.name = name;
  counter.measure(result);
  const auto elements = static_cast<double>(result.elements);
  result.budget = budget_of_byte(gpu) * static_cast<double>(result.floor_bytes) / elements;
  const auto compilation = compilation_of(compiled.source, target_profile(gpu.profile).arch);
  double seconds = 0;
  for (const schedule::Step& step : steps) {
    const auto* launch = std::get_if<schedule::KernelStep>(&step.work);
    if (!launch) continue;
    KernelCount kernel = counter.count(step, *launch, compilation->disassembly,
                                       compilation->kernels.at(launch->kernel), elements);
    kernel.predicted_seconds = counter.seconds(kernel, elements);
    seconds += kernel.predicted_seconds;
    result.slots += kernel.slots;
    result.cycles += kernel.cycles;
    result.kernels.push_back(std::move(kernel));
  }
  result.share = result.cycles / result.budget;
  result.predicted_share_of_copy = static_cast<double>(result.floor_bytes) / gpu.copy / seconds;
  return result;
}

}  // namespace fuse::bench::sass
