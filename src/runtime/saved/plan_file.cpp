// SPDX-License-Identifier: Apache-2.0
#include "runtime/saved/plan_file.hpp"

#include <algorithm>

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

SavedBuild saved_build(const Program& program, const Binary& binary) {
  Program kept = program;
  kept.kernels = binary.kernels;  // the same, with what the toolchain added
  ArchiveWriter writer;
  writer(kept);
  return {writer.bytes(), binary.maker, binary.images};
}

SavedTarget saved_target(std::vector<Fit> fits, const std::vector<Build>& builds, Provenance provenance) {
  SavedTarget target{.fits = std::move(fits), .builds = {}, .provenance = std::move(provenance)};
  const Binary none;
  for (const Build& build : builds)
    target.builds.push_back(saved_build(*build.program, build.module ? *build.module->binary : none));
  return target;
}

namespace {

RunnableBuild runnable_build(SavedBuild saved, const std::string& name) {
  RunnableBuild made;
  ArchiveReader reader(saved.program, name);
  reader(made.program);
  reader.finish();
  try {
    verify(made.program);
  } catch (const Error& error) {
    reader.damaged(error.info().message);
  }
  made.binary = {made.program.source_name, std::move(saved.maker), made.program.kernels,
                 std::move(saved.images)};
  std::size_t kernels = 0;
  for (const Binary::Image& image : made.binary.images) kernels += image.kernels;
  if (kernels != made.binary.kernels.size()) reader.damaged("images that lack kernels");
  return made;
}

/// Extents may be written differently: a build knows more about its symbols.
bool same_slots(const Signature& a, const Signature& b) {
  return std::equal(a.slots.begin(), a.slots.end(), b.slots.begin(), b.slots.end(),
                    [](const Slot& x, const Slot& y) {
                      return x.kind == y.kind && x.name == y.name && x.dtype == y.dtype &&
                             x.dims.size() == y.dims.size() && x.donor == y.donor;
                    });
}

}  // namespace

std::vector<RunnableBuild> runnable(SavedTarget target, const std::string& name) {
  std::vector<RunnableBuild> made;
  for (SavedBuild& build : target.builds) made.push_back(runnable_build(std::move(build), name));
  const auto fits = [&](const RunnableBuild& build) {
    return same_slots(build.program.signature, made.front().program.signature);
  };
  if (made.empty() || made.front().program.builds.versions != made.size())
    ArchiveReader({}, name).damaged("a table for another number of builds");
  if (!std::all_of(made.begin(), made.end(), fits))
    ArchiveReader({}, name).damaged("builds with different slots");
  return made;
}

std::vector<Build> loaded_builds(std::vector<RunnableBuild> builds, Backend& backend) {
  std::vector<Build> loaded;
  for (RunnableBuild& build : builds) {
    std::shared_ptr<const Module> module;
    if (!build.program.kernels.empty())
      module = backend.load_binary(std::make_shared<const Binary>(std::move(build.binary)));
    loaded.push_back({std::make_shared<const Program>(std::move(build.program)), std::move(module)});
  }
  return loaded;
}

}  // namespace fuse::runtime
