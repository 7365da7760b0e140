// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "ir/graph/hash.hpp"
#include "plan/emulated_abi.hpp"
#include "runtime/device/host_event.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/device/toolchain.hpp"
#include "runtime/emulated/cluster_runner.hpp"
#include "runtime/emulated/emulated.hpp"
#include "runtime/emulated/launch.hpp"
#include "runtime/emulated/memory/device_memory.hpp"
#include "runtime/emulated/pending.hpp"
#include "runtime/emulated/residents.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "target/step_cost.hpp"

namespace fuse::runtime {
namespace emulated {
namespace {

constexpr std::int64_t most_grid_x = 2147483647, most_grid_yz = 65535;

Status refuse(ErrorCode code, const std::string& text) { return Status(code, text); }

// Runs a noexcept operation whose body may allocate.
template <class F>
Status guarded(F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::out_of_memory, "the host ran out of memory");
  } catch (const std::exception& e) {
    return Status(ErrorCode::internal, e.what());
  }
}

// Every operation has finished when it returns, but for a cooperative launch.
/// What waits in a queue. Events that were recorded there hold it too: they may outlive the queue.
struct Waiting {
  explicit Waiting(std::shared_ptr<Pending> of) : pending(std::move(of)) {}
  const std::shared_ptr<Pending> pending;
  Pending::Slot slot;
};

class EmulatedQueue final : public Queue {
 public:
  EmulatedQueue(std::shared_ptr<Pending> pending, std::shared_ptr<VirtualClock> clock)
      : waiting_(std::make_shared<Waiting>(std::move(pending))), clock_(std::move(clock)) {}
  ~EmulatedQueue() override {
    static_cast<void>(settle());
    if (clock_) clock_->forget(this);
  }
  EmulatedQueue(const EmulatedQueue&) = delete;
  EmulatedQueue& operator=(const EmulatedQueue&) = delete;
  Status synchronize() noexcept override { return settle(); }
  Status settle() noexcept { return waiting_->pending->settle(waiting_->slot); }
  void add(std::unique_ptr<Launch> launch) { waiting_->pending->add(waiting_->slot, std::move(launch)); }
  const Pending* pending() const { return waiting_->pending.get(); }
  const std::shared_ptr<Waiting>& waiting() const { return waiting_; }

 private:
  const std::shared_ptr<Waiting> waiting_;
  const std::shared_ptr<VirtualClock> clock_;  // a queue may outlive its device
};

class EmulatedEvent final : public HostEvent {
 public:
  std::shared_ptr<Waiting> recorded_on;
  double virtual_time = 0;
};

/// Runs what waits in the queue: called where something is ordered after it. Its failure comes back once.
Status settle(Queue& queue) noexcept {
  auto* const own = dynamic_cast<EmulatedQueue*>(&queue);
  return own ? own->settle() : Status();
}

class EmulatedGemm;

class EmulatedBackend final : public Backend {
 public:
  explicit EmulatedBackend(const EmulatedOptions& options)
      : Backend(emulated_toolchain(options.optimization, options.checked)),
        options_(options),
        target_(options.target ? *options.target : target_profile(options.profile)),
        threads_(options.threads > 0 ? options.threads
                                     : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
        memory_(options.checked),
        clock_(options.virtual_clock ? std::make_shared<VirtualClock>(options.clock_noise, options.clock_seed)
                                     : nullptr),
        pool_(threads_ - 1),
        pending_(std::make_shared<Pending>(
            [this](std::span<Launch* const> launches) {
              run_beside(launches, {target_, options_.scheduling, pool_, runners_});
            },
            [this](Launch& launch) { return finish(launch); })) {}
  ~EmulatedBackend() override { pending_->close(); }
  EmulatedBackend(const EmulatedBackend&) = delete;
  EmulatedBackend& operator=(const EmulatedBackend&) = delete;

  const Target& target() const override { return target_; }
  std::string report() const override {
    return fmt::format("emulated {}: {}, {} thread{}\n{}\n{}", target_.name,
                       options_.checked ? "checked" : "plain", threads_, threads_ == 1 ? "" : "s",
                       toolchain() ? toolchain()->report() : "compiler: none in this library",
                       host_gemm_report());
  }

  void* allocate(std::int64_t bytes) override { return memory_.allocate(bytes); }
  void finish(const Event&) noexcept override { pending_->settle_all(); }
  void free(void* address) noexcept override {
    pending_->settle_all();  // as a GPU's driver waits for what is in flight
    memory_.release(address);
  }
  std::unique_ptr<Queue> create_queue() override { return std::make_unique<EmulatedQueue>(pending_, clock_); }
  Status upload(Queue&, void* to, const void* from, std::int64_t bytes) noexcept override;
  Status download(Queue&, void* to, const void* from, std::int64_t bytes) noexcept override;
  Status copy(Queue&, void* to, const void* from, std::int64_t bytes) noexcept override;
  Status memset(Queue&, void* to, int byte, std::int64_t bytes) noexcept override;
  std::unique_ptr<Module> load_binary(std::shared_ptr<const Binary> binary) override {
    return std::make_unique<EmulatedModule>(std::move(binary));
  }
  std::vector<Fit> fits() const override;
  std::unique_ptr<Gemm> prepare_gemm(const GemmDesc& desc) override;
  Status launch(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                int count) noexcept override;
  std::vector<KernelCounts> counts() const override;
  void reset_counts() override;

  std::unique_ptr<Event> create_event(bool) override { return std::make_unique<EmulatedEvent>(); }
  Status record(Queue& queue, Event& event) noexcept override {
    auto* const own = dynamic_cast<EmulatedEvent*>(&event);
    auto* const on = dynamic_cast<EmulatedQueue*>(&queue);
    if (own && on) own->recorded_on = on->waiting();
    if (own && on && clock_) own->virtual_time = clock_->time(on);
    return Backend::record(queue, event);
  }
  Status elapsed(const Event& from, const Event& to, double& seconds) noexcept override {
    const auto* const first = dynamic_cast<const EmulatedEvent*>(&from);
    const auto* const last = dynamic_cast<const EmulatedEvent*>(&to);
    if (!clock_ || !first || !last) return Backend::elapsed(from, to, seconds);
    seconds = last->virtual_time - first->virtual_time;
    return {};
  }
  std::string_view clock() const noexcept override { return clock_ ? clock_name_ : Backend::clock(); }
  bool repeats_times() const noexcept override { return clock_ && options_.clock_noise == 0; }
  /// OpenBLAS and the plain loops: on the host's clock the loops are never faster.
  int gemm_algorithms() const noexcept override { return clock_ && has_openblas_ ? 2 : 1; }
  std::string gemm_library() const override { return has_openblas_ ? "OpenBLAS before loops" : "loops"; }
  /// What is pending before the event runs now. Its failure is reported by its own queue.
  Status wait(Queue& queue, const Event& event) noexcept override {
    const auto* const own = dynamic_cast<const EmulatedEvent*>(&event);
    auto* const on = dynamic_cast<EmulatedQueue*>(&queue);
    if (!own || !own->recorded_on || !on || own->recorded_on == on->waiting()) return {};
    if (clock_) clock_->wait_until(on, own->virtual_time);
    return own->recorded_on->pending->await(own->recorded_on->slot);
  }

  const Memory& memory() const { return memory_; }
  VirtualClock* virtual_clock() const { return clock_.get(); }
  /// The work takes its time on the virtual clock, where there is one.
  void spend(const Queue& queue, const ClockedWork& work) const {
    if (clock_) clock_->spend(&queue, work);
  }
  void spend_on_gemm(const Queue& queue, const GemmDesc& desc) const;

 private:
  Status span(const char* what, const void* address, std::int64_t bytes, Span& found) const;
  Status check_limits(const codegen::KernelInfo& info, const Dim3& grid) const;
  Status bind(Launch& launch, const Argument* arguments, int count) const;
  Status bind_buffer(Launch& launch, std::size_t i, const Argument& argument) const;
  static void make_regions(Launch& launch);
  Status check_residency(const Launch& launch) const;
  void spend_on_launch(const Queue& queue, const Launch& launch) const;
  void run_at_once(Launch& launch);
  Status finish(Launch& launch) noexcept;
  void add_to_counts(const Launch& launch);

  const EmulatedOptions options_;
  const Target target_;
  const int threads_;
  Memory memory_;
  const std::shared_ptr<VirtualClock> clock_;  // null: time is the host's
  const bool has_openblas_ = openblas_used();
  const std::string clock_name_ = "virtual clock (" + target_.name + ')';
  Lender<Runner> runners_;
  Lender<Cells> cells_;
  mutable std::mutex counts_mutex_;
  std::map<std::string, KernelCounts> counts_;
  Pool pool_;
  const std::shared_ptr<Pending> pending_;  // last: close() runs what waits on all of the above
};

std::vector<Fit> EmulatedBackend::fits() const {
  std::vector<Fit> fits = fits_of(target_);
  utsname machine{};
  ::uname(&machine);
  fits.push_back({"device", "emulated"});
  fits.push_back({"host", machine.machine});
  fits.push_back({"checked", options_.checked ? "yes" : "no"});
  fits.push_back({"kernel interface", fmt::format("{:016x}", ir::Hasher().add(abi_text).value())});
  return fits;
}

// The range as a Span, or why it is none. No bytes need no memory.
Status EmulatedBackend::span(const char* what, const void* address, std::int64_t bytes, Span& found) const {
  if (bytes == 0) return {};
  if (const auto range = memory_.find(address, bytes)) {
    found = *range;
    return {};
  }
  return refuse(ErrorCode::invalid_argument,
                fmt::format("{}: {} bytes at {} are not inside an allocation of this device", what, bytes,
                            fmt::ptr(address)));
}

Status EmulatedBackend::upload(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept {
  return guarded([&] {
    if (Status s = settle(queue); !s) return s;
    Span target;
    if (Status s = span("upload", to, bytes, target); !s || bytes == 0) return s;
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    if (target.written) mark(target.written, bytes, true);
    return Status();
  });
}

Status EmulatedBackend::download(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept {
  return guarded([&] {
    if (Status s = settle(queue); !s) return s;
    Span source;
    if (Status s = span("download", from, bytes, source); !s || bytes == 0) return s;
    if (source.written) {
      if (const auto at = first_unwritten(source.written, bytes)) {
        return refuse(ErrorCode::kernel_fault,
                      fmt::format("download of {} bytes: nobody wrote byte {}", bytes, *at));
      }
    }
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return Status();
  });
}

Status EmulatedBackend::copy(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept {
  return guarded([&] {
    if (Status s = settle(queue); !s) return s;
    Span source, target;
    if (Status s = span("copy", from, bytes, source); !s || bytes == 0) return s;
    if (Status s = span("copy", to, bytes, target); !s) return s;
    spend(queue, {.bytes = 2 * bytes, .seconds = schedule::transfer_cost(2 * bytes, target_).seconds});
    std::memmove(to, from, static_cast<std::size_t>(bytes));
    // What nobody wrote stays so where it is copied to.
    if (target.written) std::memmove(target.written, source.written, static_cast<std::size_t>(bytes));
    return Status();
  });
}

Status EmulatedBackend::memset(Queue& queue, void* to, int byte, std::int64_t bytes) noexcept {
  return guarded([&] {
    if (Status s = settle(queue); !s) return s;
    Span target;
    if (Status s = span("memset", to, bytes, target); !s || bytes == 0) return s;
    spend(queue, {.bytes = bytes, .seconds = schedule::transfer_cost(bytes, target_).seconds});
    std::memset(to, byte, static_cast<std::size_t>(bytes));
    if (target.written) mark(target.written, bytes, true);
    return Status();
  });
}

class EmulatedGemm final : public Gemm {
 public:
  EmulatedGemm(const EmulatedBackend& backend, const GemmDesc& desc)
      : backend_(backend), desc_(with_recorded_rank(desc)), gemm_(make_host_gemm(desc_)) {}
  std::int64_t workspace_bytes() const noexcept override { return 0; }
  std::string algorithm() const override {
    return desc_.algorithm == 0 ? "on the host" : "on the host, by plain loops";
  }
  std::string recorded() const override { return std::to_string(desc_.algorithm); }
  Status run(Queue& queue, const void* a, const void* b, void* c, void*,
             const void* extra) const noexcept override {
    return guarded([&] {
      if (Status s = settle(queue); !s) return s;
      if (desc_.batch <= 0 || desc_.m <= 0 || desc_.n <= 0) return Status();
      backend_.spend_on_gemm(queue, desc_);
      const auto operand = static_cast<std::int64_t>(size_of(desc_.operand));
      const auto result = static_cast<std::int64_t>(size_of(desc_.result));
      Status done;
      for (std::int64_t i = 0; done && i < desc_.calls; ++i) {
        done = call(static_cast<const std::byte*>(a) + i * desc_.call_a * operand,
                    static_cast<const std::byte*>(b) + i * desc_.call_b * operand,
                    static_cast<std::byte*>(c) + i * desc_.call_c * result, extra);
      }
      return done;
    });
  }

 private:
  Status call(const void* a, const void* b, void* c, const void* extra) const {
    const auto operand = static_cast<std::int64_t>(size_of(desc_.operand));
    const auto result = static_cast<std::int64_t>(size_of(desc_.result));
    Span at_c;
    const Rows rows_a = {desc_.transpose_a ? desc_.k : desc_.m, desc_.transpose_a ? desc_.m : desc_.k,
                         row_of_a(desc_)};
    const Rows rows_b = {desc_.transpose_b ? desc_.n : desc_.k, desc_.transpose_b ? desc_.k : desc_.n,
                         row_of_b(desc_)};
    if (Status s = input("a", a, desc_.stride_a, rows_a, operand); !s) return s;
    if (Status s = input("b", b, desc_.stride_b, rows_b, operand); !s) return s;
    const std::int64_t row = row_of_c(desc_), last = (desc_.batch - 1) * desc_.stride_c + (desc_.m - 1) * row;
    if (Status s = range("c", c, (last + desc_.n) * result, at_c); !s) return s;
    if (Status s = input_of_epilogue(extra, result); !s) return s;
    gemm_->run(a, b, c, extra);
    for (std::int64_t i = 0; at_c.written && i < desc_.batch; ++i) {
      for (std::int64_t j = 0; j < desc_.m; ++j) {
        mark(at_c.written + (i * desc_.stride_c + j * row) * result, desc_.n * result, true);
      }
    }
    return Status();
  }
  Status input_of_epilogue(const void* extra, std::int64_t result) const {
    if (desc_.epilogue == schedule::EpilogueKind::bias)
      return input("bias", extra, 0, {1, desc_.n, desc_.n}, result);
    if (desc_.epilogue != schedule::EpilogueKind::add) return {};
    return input("addend", extra, desc_.stride_c, {desc_.m, desc_.n, desc_.n}, result);
  }
  Status range(const char* name, const void* address, std::int64_t bytes, Span& found) const {
    if (bytes == 0) return {};
    if (const auto at = backend_.memory().find(address, bytes)) {
      found = *at;
      return {};
    }
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("gemm: operand {} of {} bytes at {} is not inside an allocation of this device",
                              name, bytes, fmt::ptr(address)));
  }
  /// A matrix as it lies in memory.
  struct Rows {
    std::int64_t count = 0, columns = 0, apart = 0;
  };
  Status input(const char* name, const void* address, std::int64_t stride, const Rows& rows,
               std::int64_t size) const {
    if (rows.count == 0 || rows.columns == 0) return {};
    Span found;
    const std::int64_t last = (desc_.batch - 1) * stride + (rows.count - 1) * rows.apart;
    if (Status s = range(name, address, (last + rows.columns) * size, found); !s) return s;
    const std::int64_t matrices = found.written ? (stride ? desc_.batch : 1) : 0;
    for (std::int64_t i = 0; i < matrices * rows.count; ++i) {
      const std::int64_t start = (i / rows.count * stride + i % rows.count * rows.apart) * size;
      if (const auto at = first_unwritten(found.written + start, rows.columns * size)) {
        return refuse(ErrorCode::kernel_fault,
                      fmt::format("gemm: reads {}[{}], which nobody wrote", name, (start + *at) / size));
      }
    }
    return {};
  }

  const EmulatedBackend& backend_;
  const GemmDesc desc_;
  const std::unique_ptr<HostGemm> gemm_;
};

std::unique_ptr<Gemm> EmulatedBackend::prepare_gemm(const GemmDesc& desc) {
  return std::make_unique<EmulatedGemm>(*this, desc);
}

Status EmulatedBackend::check_limits(const codegen::KernelInfo& info, const Dim3& grid) const {
  const auto over = [&](const char* what, std::int64_t value, std::int64_t limit) {
    return refuse(ErrorCode::invalid_argument, fmt::format("{}: {} of {} exceeds the limit of {} ({})",
                                                           info.name, what, value, limit, target_.name));
  };
  if (grid.x < 0 || grid.y < 0 || grid.z < 0) {
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("{}: negative grid {} x {} x {}", info.name, grid.x, grid.y, grid.z));
  }
  if (grid.x > most_grid_x) return over("grid x", grid.x, most_grid_x);
  if (grid.y > most_grid_yz) return over("grid y", grid.y, most_grid_yz);
  if (grid.z > most_grid_yz) return over("grid z", grid.z, most_grid_yz);
  if (info.block_threads > target_.max_threads_per_block) {
    return over("block", info.block_threads, target_.max_threads_per_block);
  }
  if (info.shared_bytes > target_.shared_per_block) {
    return over("shared memory", info.shared_bytes, target_.shared_per_block);
  }
  if (info.cluster > target_.max_cluster) return over("cluster", info.cluster, target_.max_cluster);
  if (grid.x % info.cluster != 0) {
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("{}: a grid of {} blocks in x is no whole number of clusters of {}", info.name,
                              grid.x, info.cluster));
  }
  return {};
}

Status EmulatedBackend::bind_buffer(Launch& launch, std::size_t i, const Argument& argument) const {
  const codegen::KernelInfo& info = launch.kernel->info;
  const codegen::KernelParam& param = info.params[i];
  const auto size = static_cast<std::int64_t>(size_of(param.dtype));
  View& view = launch.views[i];
  view.address = reinterpret_cast<std::uintptr_t>(argument.address);
  view.writable = param.written;
  if (argument.bytes == 0) return {};
  const auto range = memory_.find(argument.address, argument.bytes);
  if (!range) {
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("{}: argument '{}' ({} bytes at {}) is not inside an allocation of this device",
                              info.name, param.name, argument.bytes, fmt::ptr(argument.address)));
  }
  // Checked mode names the access instead.
  if (!launch.checked && view.address % static_cast<std::uintptr_t>(size) != 0) {
    return refuse(ErrorCode::misaligned,
                  fmt::format("{}: argument '{}' at {} is not aligned to {} bytes", info.name, param.name,
                              fmt::ptr(argument.address), size));
  }
  view.bytes = argument.bytes;
  view.written = range->written;
  view.offset = range->offset;
  return {};
}

Status EmulatedBackend::bind(Launch& launch, const Argument* arguments, int count) const {
  const codegen::KernelInfo& info = launch.kernel->info;
  if (count != static_cast<int>(info.params.size())) {
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("{}: {} arguments for {} parameters", info.name, count, info.params.size()));
  }
  launch.views.resize(info.params.size());
  launch.counts.resize(info.params.size());
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    const codegen::KernelParam& param = info.params[i];
    if (param.kind == codegen::KernelParam::Kind::buffer) {
      launch.arguments.push_back(reinterpret_cast<std::uintptr_t>(arguments[i].address));
      if (Status s = bind_buffer(launch, i, arguments[i]); !s) return s;
      continue;
    }
    const std::int64_t value = arguments[i].value;
    if (param.dtype == DType::i32 && value != static_cast<std::int32_t>(value)) {
      return refuse(ErrorCode::invalid_argument, fmt::format("{}: extent '{}' = {} does not fit its 32 bits",
                                                             info.name, param.name, value));
    }
    launch.arguments.push_back(static_cast<unsigned long long>(value));
  }
  return {};
}

// Groups the buffers that overlap; a group that something may write gets histories.
void EmulatedBackend::make_regions(Launch& launch) {
  const auto& params = launch.kernel->info.params;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (launch.views[i].bytes > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return launch.views[a].address < launch.views[b].address; });
  for (std::size_t i : order) {
    View& view = launch.views[i];
    const std::uintptr_t end = view.address + static_cast<std::uintptr_t>(view.bytes);
    const int shift = std::countr_zero(size_of(params[i].dtype));
    if (launch.regions.empty() || view.address >= launch.regions.back()->end) {
      launch.regions.push_back(std::make_unique<Region>());
      launch.regions.back()->begin = view.address;
      launch.regions.back()->shift = shift;
    }
    Region& region = *launch.regions.back();
    region.end = std::max(region.end, end);
    region.shift = std::min(region.shift, shift);
    region.writable |= view.writable;
    view.region = &region;
  }
  std::size_t count = 0;
  for (const auto& region : launch.regions) {
    if (!region->writable) continue;
    region->first_cell = count;
    count += ((region->end - region->begin) >> region->shift) + 1;
  }
  for (View& view : launch.views) {
    if (view.region && !view.region->writable) view.region = nullptr;
  }
  launch.cell_count = count;
  launch.first_block = launch.cells->prepare(count, launch.blocks);
}

// A launch that the device can never hold as a whole: gangs refuse it, as cooperative launches do.
Status EmulatedBackend::check_residency(const Launch& launch) const {
  const codegen::KernelInfo& info = launch.kernel->info;
  if (!info.cooperative || options_.scheduling != BlockScheduling::gang) return {};
  const int of_sm = schedule::blocks_per_sm(residency_of(info, launch.blocks), target_);
  const std::uint64_t slots = static_cast<std::uint64_t>(of_sm) * static_cast<std::uint64_t>(target_.sms);
  if (launch.blocks <= slots) return {};
  return refuse(ErrorCode::invalid_argument,
                fmt::format("{}: its {} blocks wait for each other, and {} has slots for {} at once",
                            info.name, launch.blocks, target_.name, slots));
}

Status EmulatedBackend::launch(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                               int count) noexcept {
  return guarded([&] {
    if (Status s = settle(queue); !s) return s;
    const auto* kernel = dynamic_cast<const Kernel*>(&function);
    if (!kernel) return refuse(ErrorCode::internal, "launch of another device's function");
    if (Status s = check_limits(kernel->info, grid); !s) return s;
    auto launch = std::make_unique<Launch>();
    launch->kernel = kernel->shared_from_this();
    launch->grid = grid;
    launch->checked = options_.checked;
    launch->check_indices = options_.check_indices;
    if (Status s = bind(*launch, arguments, count); !s) return s;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status();
    launch->blocks = static_cast<std::uint64_t>(grid.x) * static_cast<std::uint64_t>(grid.y) *
                     static_cast<std::uint64_t>(grid.z);
    launch->cluster = static_cast<std::uint64_t>(kernel->info.cluster);
    if (Status s = check_residency(*launch); !s) return s;
    spend_on_launch(queue, *launch);
    launch->seed = options_.shuffle_seed;
    if (launch->seed) {
      launch->stride = launch->seed % launch->clusters() | 1;
      while (std::gcd(launch->stride, launch->clusters()) != 1) launch->stride += 2;
    } else if (!kernel->info.communicates) {
      launch->chunk =
          std::clamp<std::uint64_t>(launch->blocks / (static_cast<std::uint64_t>(threads_) * 16), 1, 256);
    }
    if (launch->checked) {
      launch->cells = cells_.borrow();
      make_regions(*launch);
    }
    if (!kernel->info.cooperative) {
      run_at_once(*launch);
      return finish(*launch);
    }
    auto* const own = dynamic_cast<EmulatedQueue*>(&queue);
    if (!own || own->pending() != pending_.get())
      return refuse(ErrorCode::internal, "a queue of another device");
    own->add(std::move(launch));
    return Status();
  });
}

/// By a roofline of its buffers, each once. A step's buffers are as long as its values.
void EmulatedBackend::spend_on_launch(const Queue& queue, const Launch& launch) const {
  if (!clock_) return;
  ClockedWork work{.kernel = launch.kernel->info.name,
                   .residency = residency_of(launch.kernel->info, launch.blocks)};
  for (const View& view : launch.views) work.bytes += view.bytes;
  work.seconds = schedule::kernel_cost(work.bytes, work.residency, target_).seconds;
  clock_->spend(&queue, work);
}

void EmulatedBackend::spend_on_gemm(const Queue& queue, const GemmDesc& desc) const {
  if (!clock_) return;
  const std::int64_t operand = static_cast<std::int64_t>(size_of(desc.operand)),
                     result = static_cast<std::int64_t>(size_of(desc.result));
  const std::int64_t batch = desc.batch * desc.calls;
  ClockedWork work{.gemm = &desc};
  work.bytes = operand * (desc.m * desc.k * (desc.stride_a ? batch : 1) +
                          desc.k * desc.n * (desc.stride_b ? batch : 1)) +
               result * desc.m * desc.n * batch;
  work.seconds = schedule::gemm_cost(work.bytes, batch, desc.m, desc.n, desc.k, target_).seconds;
  clock_->spend(&queue, work);
}

void EmulatedBackend::run_at_once(Launch& launch) {
  if (launch.cluster > 1) {
    const std::function<void()> work = [&]() noexcept { run_clusters(launch, runners_); };
    pool_.run(work, static_cast<int>(std::min<std::uint64_t>(launch.clusters() - 1, 1024)));
    return;
  }
  const std::uint64_t chunks = (launch.blocks + launch.chunk - 1) / launch.chunk;
  const std::function<void()> work = [&]() noexcept {
    try {
      auto runner = runners_.borrow();
      runner->run(launch);
      runners_.give_back(std::move(runner));
    } catch (const std::exception&) {
      launch.fail({.kind = Fault::Kind::memory});
    }
  };
  pool_.run(work, static_cast<int>(std::min<std::uint64_t>(chunks - 1, 1024)));
}

Status EmulatedBackend::finish(Launch& launch) noexcept {
  return guarded([&] {
    const codegen::KernelInfo& info = launch.kernel->info;
    if (!launch.fault) launch.fault = launch.pending;
    if (launch.cells) cells_.give_back(std::move(launch.cells));
    add_to_counts(launch);
    if (!launch.fault) return Status();
    // What a faulty kernel wrote is worth nothing.
    for (const View& view : launch.views) {
      if (launch.checked && view.writable && view.bytes > 0) mark(view.written, view.bytes, false);
    }
    switch (launch.fault->kind) {
      case Fault::Kind::memory:
        return refuse(ErrorCode::out_of_memory, describe(*launch.fault, info));
      case Fault::Kind::deadlock:
        return refuse(ErrorCode::kernel_fault, launch.deadlock);
      default:
        return refuse(ErrorCode::kernel_fault, describe(*launch.fault, info));
    }
  });
}

void EmulatedBackend::add_to_counts(const Launch& launch) {
  if (!launch.checked) return;
  const std::lock_guard lock(counts_mutex_);
  KernelCounts& row = counts_[launch.kernel->info.name];
  row.kernel = launch.kernel->info.name;
  ++row.launches;
  row.block_barriers += launch.barriers;
  row.grid_barriers += launch.grid_barriers;
  row.cluster_barriers += launch.cluster_barriers;
  row.ops.resize(std::max(row.ops.size(), launch.ops.size()));
  for (std::size_t i = 0; i < launch.ops.size(); ++i) row.ops[i] += launch.ops[i];
  row.params.resize(std::max(row.params.size(), launch.counts.size()));
  for (std::size_t i = 0; i < launch.counts.size(); ++i) {
    const AccessCounts& from = launch.counts[i];
    AccessCounts& to = row.params[i];
    to.loads += from.loads;
    to.stores += from.stores;
    to.load_bytes += from.load_bytes;
    to.store_bytes += from.store_bytes;
    to.load_sectors += from.load_sectors;
    to.store_sectors += from.store_sectors;
  }
}

std::vector<KernelCounts> EmulatedBackend::counts() const {
  const std::lock_guard lock(counts_mutex_);
  std::vector<KernelCounts> rows;
  for (const auto& [name, row] : counts_) rows.push_back(row);
  return rows;
}

void EmulatedBackend::reset_counts() {
  const std::lock_guard lock(counts_mutex_);
  counts_.clear();
}

}  // namespace
}  // namespace emulated

std::unique_ptr<Backend> make_emulated_backend(const EmulatedOptions& options) {
  if (options.threads < 0 || options.threads > 1024) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the emulated device cannot run on {} threads", options.threads),
                 .hint = "0 takes as many as the machine has"});
  }
  return std::make_unique<emulated::EmulatedBackend>(options);
}

void plant_costs(Backend& backend, PlantedCost cost) {
  auto* const own = dynamic_cast<emulated::EmulatedBackend*>(&backend);
  if (!own || !own->virtual_clock())
    throw Error({.kind = ErrorKind::internal, .message = "costs are planted on a virtual clock alone"});
  own->virtual_clock()->plant(std::move(cost));
}

}  // namespace fuse::runtime
