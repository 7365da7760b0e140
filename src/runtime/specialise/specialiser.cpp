// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fuse/specialise.hpp>
#include <list>
#include <mutex>
#include <utility>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "os/background_maker.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/explore/candidate_builder.hpp"
#include "runtime/explore/variant.hpp"
#include "runtime/specialise/static_build.hpp"

namespace fuse {
inline namespace v0 {
namespace {

using State = SpecialisedDims::State;
using runtime::Variant;

constexpr std::size_t most_dims = 32;  // whose runs are counted

const CompileOptions& checked(const Device& device, const SpecialiseOptions& options,
                              const CompileOptions& compile) {
  if (device.kind() == DeviceKind::reference) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the reference device has nothing to specialise",
                 .hint = "it runs op by op: take another device"});
  }
  for (const auto& [name, value] : {std::pair{"runs", options.runs}, {"most", options.most}}) {
    if (value >= 1) continue;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("specialise: {} = {}", name, value),
                 .hint = fmt::format("{} is at least 1", name)});
  }
  if (options.bits != Bits::keep && options.bits != Bits::any) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("specialise: bits = {}", static_cast<int>(options.bits)),
                 .hint = "bits is Bits::keep or Bits::any"});
  }
  return compile;
}

/// The static build of an entry goes, and its runs are counted anew.
SpecialisedDims forget(const SpecialisedDims& known) {
  return {.dims = known.dims, .usual_seconds = known.usual_seconds};
}

}  // namespace

std::string_view to_string(State state) {
  constexpr std::string_view names[] = {"counted", "compiling", "special", "refused"};
  const auto index = static_cast<std::size_t>(state);
  return index < std::size(names) ? names[index] : "?";
}

struct Specialiser::Impl {
  /// A static build, and what it took.
  struct Special {
    runtime::BuiltVariant built{};
    double compile_seconds = 0, seconds = 0;
  };
  /// Some dims, with the variants that run them.
  struct Entry {
    SpecialisedDims known{};
    std::shared_ptr<Variant> usual{}, special{};
  };

  Impl(const Graph& g, const Device& d, SpecialiseOptions s, CompileOptions c)
      : graph(g),
        device(d),
        options(std::move(s)),
        compile_options(std::move(c)),
        executable(compile(graph, device, compile_options)),
        builder([this](const DimValues& dims) { return make(dims); }) {}

  Special make(const DimValues& dims) const;
  Entry& entry_of(const DimValues& dims, std::vector<SpecialisedDims>& news);
  void advance(Entry& entry, std::vector<SpecialisedDims>& news);
  void make_room(std::vector<SpecialisedDims>& news);
  std::int64_t count(State state) const;
  Status run(Stream& stream, const DimValues& dims, std::span<const BufferView> buffers);

  const Graph graph;
  const Device device;
  const SpecialiseOptions options;
  const CompileOptions compile_options;
  const Executable executable;
  std::atomic<std::uint64_t> parameters{1};
  mutable std::mutex mutex;                       // of what follows
  std::shared_ptr<runtime::PackedMemory> packed;  // of the executable for all dims
  std::list<Entry> entries;                       // the dims that came last stand first
  BackgroundMaker<DimValues, Special> builder;    // last: its thread uses the rest
};

/// On the builder's thread, and on no other: runs need the rest.
Specialiser::Impl::Special Specialiser::Impl::make(const DimValues& dims) const {
  const auto start = std::chrono::steady_clock::now();
  Special made;
  made.built = runtime::built_by([&] {
    CompileOptions how = compile_options;
    how.threads = 1;
    return std::make_shared<Variant>(
        runtime::static_build(graph, dims, runtime::compiled_builds(executable), device, how, options.bits),
        DimValues());
  });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  made.compile_seconds = taken.count();
  if (made.built.variant) made.seconds = made.built.variant->prepared().predicted().seconds;
  return made;
}

std::int64_t Specialiser::Impl::count(State state) const {
  return std::ranges::count(entries, state, [](const Entry& entry) { return entry.known.state; });
}

Specialiser::Impl::Entry& Specialiser::Impl::entry_of(const DimValues& dims,
                                                      std::vector<SpecialisedDims>& news) {
  const auto found =
      std::ranges::find_if(entries, [&](const Entry& entry) { return entry.known.dims == dims; });
  if (found != entries.end()) {
    entries.splice(entries.begin(), entries, found);
    return entries.front();
  }
  const Prepared prepared = executable.prepare(dims);  // says what is wrong with them
  if (!packed) packed = std::make_shared<runtime::PackedMemory>(executable, prepared);
  Entry entry{.known = {.dims = dims, .usual_seconds = prepared.predicted().seconds}};
  entry.usual = std::make_shared<Variant>(executable, dims, ExecutionMode::streams, packed);
  entries.push_front(std::move(entry));
  if (entries.size() > most_dims) {  // the builder gives what it makes to an entry that is there
    const auto goes = std::find_if(entries.rbegin(), entries.rend(),
                                   [](const Entry& each) { return each.known.state != State::compiling; });
    if (goes != entries.rend()) {
      if (goes->special) news.push_back(forget(goes->known));
      entries.erase(std::next(goes).base());
    }
  }
  return entries.front();
}

/// For one more static build, where there are as many as there may be: the one that ran longest ago goes.
void Specialiser::Impl::make_room(std::vector<SpecialisedDims>& news) {
  if (count(State::special) < options.most) return;
  const auto goes = std::find_if(entries.rbegin(), entries.rend(),
                                 [](const Entry& each) { return each.special != nullptr; });
  goes->special = nullptr;
  news.push_back(goes->known = forget(goes->known));
}

/// Before a run of these dims. `news`: what there is to announce.
void Specialiser::Impl::advance(Entry& entry, std::vector<SpecialisedDims>& news) {
  SpecialisedDims& known = entry.known;
  const bool comes_often = known.state == State::counted && known.runs >= options.runs && !known.dims.empty();
  if (comes_often && count(State::compiling) < options.most) {
    known.state = State::compiling;
    builder.ask(known.dims);
  }
  if (known.state != State::compiling) return;
  const std::unique_ptr<Special> made = builder.take(known.dims);
  if (!made) return;
  known.state = State::refused;
  if (!made->built.variant) {
    known.why = made->built.failed;
  } else if (made->seconds > known.usual_seconds) {
    known.why = fmt::format("it would take {:.3g} us, not {:.3g}, by the cost model", 1e6 * made->seconds,
                            1e6 * known.usual_seconds);
  } else {
    make_room(news);
    entry.special = made->built.variant;
    known.state = State::special;
    known.compile_seconds = made->compile_seconds;
    known.special_seconds = made->seconds;
  }
  news.push_back(known);
}

Status Specialiser::Impl::run(Stream& stream, const DimValues& dims, std::span<const BufferView> buffers) {
  const bool captured = backend_of(device)->captures(queue_of(stream));
  std::shared_ptr<Variant> variant;
  std::vector<SpecialisedDims> news;
  {
    const std::lock_guard lock(mutex);
    Entry& entry = entry_of(dims, news);
    ++entry.known.runs;
    if (!captured) advance(entry, news);
    variant = entry.special ? entry.special : entry.usual;
  }
  if (options.announce)
    for (const SpecialisedDims& each : news) options.announce(each);
  return variant->run(stream, buffers, parameters);
}

Specialiser::Specialiser(const Graph& graph, const Device& device, const SpecialiseOptions& specialise,
                         const CompileOptions& compile)
    : impl_(std::make_unique<Impl>(graph, device, specialise, checked(device, specialise, compile))) {}

Specialiser::Specialiser(Specialiser&&) noexcept = default;
Specialiser& Specialiser::operator=(Specialiser&&) noexcept = default;
Specialiser::~Specialiser() = default;

const std::vector<Slot>& Specialiser::slots() const { return impl_->executable.slots(); }
const Executable& Specialiser::executable() const { return impl_->executable; }

Status Specialiser::run(Stream& stream, const DimValues& dims, std::span<const BufferView> buffers) noexcept {
  try {
    return impl_->run(stream, dims, buffers);
  } catch (const std::exception& failed) {
    return runtime::status_of(failed);
  }
}

void Specialiser::parameters_changed() { ++impl_->parameters; }

std::vector<SpecialisedDims> Specialiser::dims() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<SpecialisedDims> result;
  for (const Impl::Entry& entry : impl_->entries) result.push_back(entry.known);
  return result;
}

void Specialiser::wait_for_compiler() { impl_->builder.wait(); }

}  // namespace v0
}  // namespace fuse
