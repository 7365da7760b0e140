// SPDX-License-Identifier: Apache-2.0
#include "compile/cache/compile_cache.hpp"

#include <fmt/format.h>

#include "ir/graph/hash.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime {

GraphKey::GraphKey(std::shared_ptr<const ir::Graph> graph, const CompileOptions& options)
    : graph_(std::move(graph)), options_(options), hash_(ir::hash(*graph_)) {
  options_.threads = 0;  // these change nothing in what is made
  options_.cache = true;
}

bool GraphKey::operator==(const GraphKey& other) const {
  return hash_ == other.hash_ && options_ == other.options_ && ir::identical(*graph_, *other.graph_);
}

ModuleKey::ModuleKey(std::shared_ptr<const codegen::Source> source, std::string build)
    : source_(std::move(source)), build_(std::move(build)) {
  ir::Hasher hasher;
  hash_ = hasher.add(std::string_view(source_->body)).add(std::string_view(build_)).value();
}

bool ModuleKey::operator==(const ModuleKey& other) const {
  return hash_ == other.hash_ && build_ == other.build_ && *source_ == *other.source_;
}

void CompileCache::note_disk(std::string trouble) {
  const std::lock_guard lock(mutex_);
  disk_trouble_ = std::move(trouble);
}

void CompileCache::note_no_disk(std::string why) {
  const std::lock_guard lock(mutex_);
  disk_unused_ = std::move(why);
}

std::string CompileCache::report() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto line = [&](const char* what, const auto& counts) {
    if (counts.hits + counts.misses == 0) return;
    text += fmt::format("{}: {} looked up, {} found, {} held\n", what, counts.hits + counts.misses,
                        counts.hits, counts.held);
  };
  line("compiled graphs", stages.counts());
  line("compiled texts", modules.counts());
  line("compiled kernels", kernels.counts());
  if (!disk_unused_.empty()) text += fmt::format("cache: not used: {}\n", disk_unused_);
  const std::size_t found = disk_hits, looked_up = found + disk_misses;
  if (looked_up > 0)
    text += fmt::format("compiled graphs on disk: {} looked up, {} found\n", looked_up, found);
  if (!disk_trouble_.empty()) text += fmt::format("the last one was not kept: {}\n", disk_trouble_);
  return text;
}

Toolchain::Toolchain() : cache_(std::make_unique<CompileCache>()) {}
Toolchain::~Toolchain() = default;
std::string Toolchain::remembered() const { return cache_->report(); }

}  // namespace fuse::runtime
