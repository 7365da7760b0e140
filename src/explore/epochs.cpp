// SPDX-License-Identifier: Apache-2.0
#include "explore/epochs.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace fuse::explore {
namespace {

/// Ways that are looked at; of more, the most balanced counts of each class come first.
constexpr std::size_t most_ways = 20'000;
/// More equivalent work than this is moved in bundles of about the same size.
constexpr int most_bundles = 24;

using Kinds = std::vector<std::uint64_t>;
/// What members of a class have in common.
using Likeness = std::tuple<std::uint64_t, Kinds, Kinds>;

/// FNV-1a.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((number >> (8 * byte)) & 0xff)) * 0x100000001b3u;
  return hash;
}

std::uint64_t hash_of(std::uint64_t hash, const Likeness& likeness) {
  const auto& [kind, before, behind] = likeness;
  hash = mixed(hash, kind);
  for (const Kinds* kinds : {&before, &behind}) {
    hash = mixed(hash, kinds->size());
    for (const std::uint64_t each : *kinds) hash = mixed(hash, each);
  }
  return hash;
}

std::vector<Likeness> likeness_of(std::span<const Work> all) {
  std::vector<Likeness> result(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::get<0>(result[i]) = all[i].kind;
    for (const std::uint32_t before : all[i].after) {
      std::get<1>(result[i]).push_back(all[before].kind);
      std::get<2>(result[before]).push_back(all[i].kind);
    }
  }
  for (auto& [kind, before, behind] : result) {
    std::sort(before.begin(), before.end());
    std::sort(behind.begin(), behind.end());
  }
  return result;
}

/// Streams are named in the order in which they are first used.
Placement renamed(const Placement& placement) {
  std::map<std::uint8_t, std::uint8_t> names;
  Placement result;
  for (const std::uint8_t stream : placement)
    result.push_back(names.emplace(stream, static_cast<std::uint8_t>(names.size())).first->second);
  return result;
}

/// Ways to spread a class, the most balanced first.
std::vector<std::vector<int>> counts_of(const EquivalenceClass& own, int streams) {
  const auto members = static_cast<std::int64_t>(own.members.size());
  const std::int64_t bundles = std::min<std::int64_t>(members, most_bundles);
  std::vector<std::vector<int>> result = stream_counts(static_cast<int>(bundles), streams, true);
  std::reverse(result.begin(), result.end());
  for (std::vector<int>& counts : result) {
    std::int64_t sum = 0, before = 0;
    for (int& count : counts) {
      sum += count;
      const std::int64_t end = sum * members / bundles;
      count = static_cast<int>(end - std::exchange(before, end));
    }
  }
  return result;
}

double busiest(const Epoch& epoch, const Placement& placement) {
  std::map<std::uint8_t, double> seconds;
  std::size_t at = 0;
  for (const EquivalenceClass& each : epoch.classes) {
    for (std::size_t i = 0; i < each.members.size(); ++i) seconds[placement[at++]] += each.seconds;
  }
  double most = 0;
  for (const auto& [stream, own] : seconds) most = std::max(most, own);
  return most;
}

}  // namespace

std::vector<std::uint32_t> Epoch::members() const {
  std::vector<std::uint32_t> result;
  for (const EquivalenceClass& each : classes)
    result.insert(result.end(), each.members.begin(), each.members.end());
  return result;
}

double Epoch::seconds() const {
  double sum = 0;
  for (const EquivalenceClass& each : classes) sum += each.seconds * static_cast<double>(each.members.size());
  return sum;
}

std::vector<int> levels_of(std::span<const Work> all) {
  std::vector<int> result(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::uint32_t before : all[i].after) result[i] = std::max(result[i], result[before] + 1);
  }
  return result;
}

std::vector<Epoch> epochs_of(std::span<const Work> all) {
  const std::vector<int> levels = levels_of(all);
  const std::vector<Likeness> likeness = likeness_of(all);
  std::map<int, std::map<Likeness, EquivalenceClass>> by_level;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].kind == 0) continue;
    EquivalenceClass& own = by_level[levels[i]][likeness[i]];
    own.members.push_back(i);
    own.seconds = all[i].seconds;
  }
  std::vector<Epoch> result;
  for (auto& [level, classes] : by_level) {
    Epoch epoch{.level = level, .key = 0xcbf29ce484222325u};
    for (auto& [common, own] : classes) {
      epoch.key = mixed(hash_of(epoch.key, common), own.members.size());
      epoch.classes.push_back(std::move(own));
    }
    if (epoch.members().size() > 1) result.push_back(std::move(epoch));
  }
  return result;
}

std::vector<std::vector<int>> stream_counts(int kernels, int streams, bool may_be_empty) {
  std::vector<std::vector<int>> found;
  std::vector<int> counts;
  const int least = may_be_empty ? 0 : 1;
  const std::function<void(int, int)> put = [&](int left, int most) {
    const int after = streams - static_cast<int>(counts.size()) - 1;  // streams behind this one
    if (after < 0) {
      if (left == 0) found.push_back(counts);
      return;
    }
    for (int count = std::min(most, left - after * least); count >= least; --count) {
      if (std::int64_t{count} * (after + 1) < left) break;  // later streams have no more than this one
      counts.push_back(count);
      put(left - count, count);
      counts.pop_back();
    }
  };
  put(kernels, kernels);
  return found;
}

std::vector<Placement> placements(const Epoch& epoch, int streams, std::size_t most) {
  std::set<Placement> found;
  std::size_t looked_at = 0;
  Placement placement;
  const std::function<void(std::size_t)> place = [&](std::size_t number) {
    if (number == epoch.classes.size()) {
      found.insert(renamed(placement));
      ++looked_at;
      return;
    }
    for (std::vector<int> counts : counts_of(epoch.classes[number], streams)) {
      // The first class names the streams; the others meet them in any order.
      std::sort(counts.begin(), counts.end(), std::greater<>());
      do {
        if (looked_at == most_ways) return;
        const std::size_t before = placement.size();
        for (std::size_t stream = 0; stream < counts.size(); ++stream)
          placement.insert(placement.end(), static_cast<std::size_t>(counts[stream]),
                           static_cast<std::uint8_t>(stream));
        place(number + 1);
        placement.resize(before);
      } while (number > 0 && std::prev_permutation(counts.begin(), counts.end()));
    }
  };
  place(0);
  std::vector<std::pair<double, Placement>> sorted;
  for (const Placement& each : found) sorted.emplace_back(busiest(epoch, each), each);
  std::sort(sorted.begin(), sorted.end());
  std::vector<Placement> result;
  for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i)
    result.push_back(std::move(sorted[i].second));
  return result;
}

}  // namespace fuse::explore
