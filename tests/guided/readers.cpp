// SPDX-License-Identifier: Apache-2.0
#include <fuse/error.hpp>
#include <fuse/weights.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "compile/cache/disk_cache.hpp"
#include "guided/targets.hpp"
#include "ir/text/print.hpp"
#include "runtime/saved/container.hpp"
#include "runtime/saved/fields.hpp"
#include "runtime/saved/plan_file.hpp"
#include "tensors/npy.hpp"
#include "tensors/safetensors.hpp"

namespace fuse::guided {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Named errors are answers.
template <class F>
void answered(F&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw std::logic_error(error.what());
  }
}

/// As a file, and as what a right checksum vouches for.
template <class F>
void sealed_or_not(std::string_view magic, std::string_view bytes, F&& read) {
  answered([&] { read(runtime::unseal(magic, runtime::plan_format, bytes, "file")); });
  const std::string file = runtime::seal(magic, runtime::plan_format, bytes);
  answered([&] { read(runtime::unseal(magic, runtime::plan_format, file, "file")); });
}

void check_targets(std::vector<runtime::SavedTarget> targets) {
  for (runtime::SavedTarget& target : targets) {
    for (const runtime::RunnableBuild& build : runtime::runnable(std::move(target), "file"))
      runtime::verify(build.program);
  }
}

}  // namespace

void run_fuse(std::string_view bytes) {
  answered([&] {
    const std::string text = ir::print(ir::parse(bytes, "input.fuse"));
    if (ir::print(ir::parse(text, "input.fuse")) != text) throw std::logic_error("another text: " + text);
  });
}

void run_npy(std::string_view bytes) {
  answered([&] { runtime::parse_npy(as_bytes(bytes), "input.npy"); });
}

void run_safetensors(std::string_view bytes) {
  answered([&] { runtime::parse_safetensors(as_bytes(bytes), "input.safetensors"); });
}

void run_plan(std::string_view bytes) {
  sealed_or_not("fuseplan", bytes, [](std::string_view content) {
    runtime::ArchiveReader reader(content, "file");
    std::vector<runtime::SavedTarget> targets;
    reader(targets);
    reader.finish();
    check_targets(std::move(targets));
  });
}

void run_cache(std::string_view bytes) {
  sealed_or_not("fusecach", bytes, [](std::string_view content) {
    runtime::ArchiveReader reader(content, "file");
    std::string key, title;
    runtime::SavedTarget target;
    reader(key, title, target);
    reader.finish();
    check_targets({std::move(target)});
  });
}

}  // namespace fuse::guided
