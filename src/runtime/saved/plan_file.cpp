// SPDX-License-Identifier: Apache-2.0
#include "runtime/saved/plan_file.hpp"

#include "runtime/saved/container.hpp"
#include "runtime/saved/fields.hpp"

namespace fuse::runtime {

namespace {

constexpr std::string_view plan_magic = "fuseplan";

}  // namespace

std::string plan_file(const std::vector<SavedTarget>& targets) {
  ArchiveWriter writer;
  writer(targets);
  return seal(plan_magic, plan_format, writer.bytes());
}

std::vector<SavedTarget> parse_plan_file(std::string_view file, const std::string& name) {
  ArchiveReader reader(unseal(plan_magic, plan_format, file, name), name);
  std::vector<SavedTarget> targets;
  reader(targets);
  reader.finish();
  return targets;
}

SavedTarget saved_target(std::vector<Fit> fits, const Program& program, const Binary& binary,
                         Provenance provenance) {
  Program kept = program;
  kept.kernels = binary.kernels;  // the same, with what the toolchain added
  ArchiveWriter writer;
  writer(kept);
  return {std::move(fits), writer.bytes(), binary.maker, binary.images, std::move(provenance)};
}

Runnable runnable(SavedTarget target, const std::string& name) {
  Runnable made;
  ArchiveReader reader(target.program, name);
  reader(made.program);
  reader.finish();
  try {
    verify(made.program);
  } catch (const Error& error) {
    reader.damaged(error.info().message);
  }
  made.binary = {made.program.source_name, std::move(target.maker), made.program.kernels,
                 std::move(target.images)};
  std::size_t kernels = 0;
  for (const Binary::Image& image : made.binary.images) kernels += image.kernels;
  if (kernels != made.binary.kernels.size()) reader.damaged("images that lack kernels");
  return made;
}

}  // namespace fuse::runtime
