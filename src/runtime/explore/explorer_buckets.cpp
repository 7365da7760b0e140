// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fuse/explore.hpp>
#include <mutex>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "compile/signature_of.hpp"
#include "runtime/execute/binding.hpp"
#include "runtime/explore/snapshot.hpp"

namespace fuse {
inline namespace v0 {
namespace {

/// "B = 4, S = 13".
std::string text_of(const DimValues& dims) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : dims) parts.push_back(fmt::format("{} = {}", name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Error wrong(const std::string& what, const std::string& hint) {
  return Error({.code = ErrorCode::invalid_argument, .message = "buckets: " + what, .hint = hint});
}

/// Throws for dims that the graph does not have or allow, and for those that have no value.
void check(const Graph& graph, const DimValues& dims) {
  for (const ir::Symbol& symbol : ir_of(graph).symbols) {
    if (!dims.contains(symbol.name))
      throw wrong(fmt::format("{} has no value", symbol.name), "every dim of the graph has one");
  }
  static_cast<void>(runtime::Binding(runtime::signature_of(ir_of(graph), {}), dims));
}

}  // namespace

struct ExplorerBuckets::Impl {
  struct Bucket {
    DimValues dims{};
    double operations = 0;
    std::unique_ptr<Explorer> explorer{};
  };

  Graph graph;
  Device device;
  ExploreOptions explore;
  CompileOptions compile;
  std::vector<Bucket> buckets;
  std::mutex making;

  Bucket& at(std::size_t bucket) {
    if (bucket < buckets.size()) return buckets[bucket];
    throw wrong(fmt::format("there is no bucket {}", bucket),
                fmt::format("they are numbered from 0 to {}", buckets.size() - 1));
  }
};

ExplorerBuckets::ExplorerBuckets(const Graph& graph, const Device& device, std::vector<DimValues> buckets,
                                 const ExploreOptions& explore, const CompileOptions& compile)
    : impl_(new Impl{graph, device, explore, compile, {}, {}}) {
  if (buckets.empty()) throw wrong("there are none", "each is a value for every dim of the graph");
  for (DimValues& dims : buckets) {
    check(graph, dims);
    for (const Impl::Bucket& other : impl_->buckets) {
      if (other.dims == dims) throw wrong(fmt::format("{} is there twice", text_of(dims)), "once is enough");
    }
    const double operations = runtime::operations_of(ir_of(graph), dims);
    impl_->buckets.push_back({std::move(dims), operations, nullptr});
  }
}

ExplorerBuckets::ExplorerBuckets(ExplorerBuckets&&) noexcept = default;
ExplorerBuckets& ExplorerBuckets::operator=(ExplorerBuckets&&) noexcept = default;
ExplorerBuckets::~ExplorerBuckets() = default;

std::size_t ExplorerBuckets::size() const { return impl_->buckets.size(); }
const DimValues& ExplorerBuckets::dims(std::size_t bucket) const { return impl_->at(bucket).dims; }

std::size_t ExplorerBuckets::bucket_for(const DimValues& dims) const {
  check(impl_->graph, dims);
  const auto has_room = [&](const Impl::Bucket& bucket) {
    return std::all_of(dims.begin(), dims.end(),
                       [&](const auto& each) { return bucket.dims.at(each.first) >= each.second; });
  };
  const Impl::Bucket* best = nullptr;
  for (const Impl::Bucket& bucket : impl_->buckets) {
    if (has_room(bucket) && (!best || bucket.operations < best->operations)) best = &bucket;
  }
  if (best) return static_cast<std::size_t>(best - impl_->buckets.data());
  std::vector<std::string> all;
  for (const Impl::Bucket& bucket : impl_->buckets) all.push_back(text_of(bucket.dims));
  throw wrong(fmt::format("none has room for {}", text_of(dims)),
              fmt::format("they are {}", fmt::join(all, "; ")));
}

Explorer& ExplorerBuckets::explorer(std::size_t bucket) {
  Impl::Bucket& one = impl_->at(bucket);
  const std::lock_guard lock(impl_->making);
  if (!one.explorer)
    one.explorer =
        std::make_unique<Explorer>(impl_->graph, impl_->device, one.dims, impl_->explore, impl_->compile);
  return *one.explorer;
}

}  // namespace v0
}  // namespace fuse
