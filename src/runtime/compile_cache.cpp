// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile_cache.hpp"

#include <fmt/format.h>

#include "ir/hash.hpp"
#include "runtime/residency_ledger.hpp"

namespace fuse::runtime {

GraphKey::GraphKey(std::shared_ptr<const ir::Graph> graph, const CompileOptions& options)
    : graph_(std::move(graph)), options_(options), hash_(ir::hash(*graph_)) {
  options_.threads = 0;  // changes nothing of what is made
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

std::string CompileCache::report() const {
  std::string text;
  const auto line = [&](const char* what, const auto& counts) {
    if (counts.hits + counts.misses == 0) return;
    text += fmt::format("{}: {} looked up, {} found, {} held\n", what, counts.hits + counts.misses,
                        counts.hits, counts.held);
  };
  line("compiled graphs", stages.counts());
  line("compiled texts", modules.counts());
  return text;
}

Backend::Backend()
    : residency_(std::make_shared<ResidencyLedger>()), cache_(std::make_unique<CompileCache>()) {}
Backend::~Backend() = default;

}  // namespace fuse::runtime
