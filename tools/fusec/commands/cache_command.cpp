// fusec cache: what fuse keeps on disk of what it compiled. SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/quoting.hpp"
#include "compile/cache/disk_cache.hpp"
#include "fusec/commands.hpp"
#include "fusec/common.hpp"

namespace fuse::fusec {
namespace {

using runtime::DiskCache;

std::string age_of(std::time_t used) {
  const auto seconds = static_cast<long>(std::difftime(std::time(nullptr), used));
  if (seconds < 120) return fmt::format("{} s", std::max(seconds, 0L));
  if (seconds < 2 * 3600) return fmt::format("{} min", seconds / 60);
  return seconds < 48 * 3600 ? fmt::format("{} h", seconds / 3600) : fmt::format("{} days", seconds / 86400);
}

int list(const DiskCache& cache) {
  std::vector<std::vector<std::string>> rows = {{"entry", "bytes", "unused for", "what"}};
  std::uint64_t bytes = 0;
  for (const DiskCache::Entry& entry : cache.entries(true)) {
    bytes += entry.bytes;
    rows.push_back({entry.name.substr(0, 16), std::to_string(entry.bytes), age_of(entry.used),
                    entry.damage.empty() ? entry.title : "damaged"});
  }
  print_line(fmt::format("{}: {}, {} bytes", cache.directory(), counted(rows.size() - 1, "entry", "entries"),
                         bytes));
  if (rows.size() > 1) print_line(table(rows));
  return 0;
}

int verify(const DiskCache& cache) {
  std::size_t whole = 0, damaged = 0;
  for (const DiskCache::Entry& entry : cache.entries(true)) {
    if (entry.damage.empty()) {
      ++whole;
      continue;
    }
    ++damaged;
    print_line(fmt::format("{}: {}", entry.name, entry.damage));
  }
  print_line(fmt::format("{}: {} whole, {} damaged", cache.directory(), counted(whole, "entry", "entries"),
                         damaged));
  return damaged == 0 ? 0 : 1;
}

}  // namespace

int execute(const CacheOptions& options) {
  const DiskCache cache = DiskCache::open();
  if (cache.directory().empty()) {
    print_line("no cache: " + cache.unused());
    return 0;
  }
  switch (options.action) {
    case CacheOptions::Action::list:
      return list(cache);
    case CacheOptions::Action::verify:
      return verify(cache);
    case CacheOptions::Action::clear:
      print_line(
          fmt::format("{}: {} removed", cache.directory(), counted(cache.clear(), "entry", "entries")));
  }
  return 0;
}

}  // namespace fuse::fusec
