// SPDX-License-Identifier: Apache-2.0
#include "compile/compile.hpp"

#include <fmt/format.h>

#include <functional>
#include <mutex>
#include <optional>

#include "base/access.hpp"
#include "base/json_reader.hpp"
#include "compile/builds/builds.hpp"
#include "compile/cache/cache_key.hpp"
#include "compile/cache/compile_cache.hpp"
#include "compile/cache/disk_cache.hpp"
#include "compile/custom_kernels.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/program_of.hpp"
#include "compile/signature_of.hpp"
#include "ir/graph/verify.hpp"
#include "ir/text/print.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/device/toolchain.hpp"
#include "runtime/reference/reference_run.hpp"
#include "runtime/saved/plan_file.hpp"

namespace fuse {
namespace runtime {
namespace {

std::string options_json(const CompileOptions& options) {
  // A new option does not compile here until it is added.
  const auto& [relaxed_rounding, experiments, merge_gemms, search, grid_barriers, max_inputs, versions,
               builds, decisions, skip_unfit_decisions, threads, streams, cache] = options;
  const auto& [cut, layers, stitch, schemes, fault] = experiments_of(options);
  static_cast<void>(experiments);
  static_cast<void>(threads);
  static_cast<void>(cache);
  return fmt::format(
      "{{\"relaxed_rounding\": {}, \"fault\": \"{}\", \"merge_gemms\": {}, \"cut\": {}, \"layers\": {}, "
      "\"stitch\": {}, \"schemes\": {}, \"search\": {}, \"grid_barriers\": {}, \"max_inputs\": {}, "
      "\"versions\": {}, \"builds\": {}, \"streams\": {}, "
      "\"decisions\": {}, \"skip_unfit_decisions\": {}}}",
      relaxed_rounding, fault, merge_gemms, static_cast<int>(cut), layers, static_cast<int>(stitch),
      static_cast<int>(schemes), search, grid_barriers, max_inputs, versions, builds, streams,
      json_string(decisions), skip_unfit_decisions);
}

class Stages final : public Origin {
 public:
  Stages(std::shared_ptr<const ir::Graph> graph, std::shared_ptr<const CompiledBuilds> compiled,
         const CompileOptions& options = {})
      : graph_(std::move(graph)), options_(options), compiled_(std::move(compiled)) {}
  /// The stages of programs that another process made: compiled again, up to the text, when they are asked
  /// for.
  Stages(std::shared_ptr<const ir::Graph> graph, std::function<CompiledBuilds()> make,
         const CompileOptions& options)
      : graph_(std::move(graph)), options_(options), make_(std::move(make)) {}

  std::string explain(const Executable::Impl& impl) const override {
    return runtime::explain(impl, builds());
  }
  const std::string& source() const override {
    std::call_once(text_made_, [this] {
      const CompiledBuilds& builds = this->builds();
      for (std::size_t i = 0; i < builds.each.size(); ++i) {
        const codegen::Source& source = builds.each[i].source;
        if (source.kernels.empty()) continue;
        if (builds.each.size() > 1) text_ += fmt::format("// {}\n", build_text(builds.regions, i));
        text_ += source.text();
      }
    });
    return text_;
  }
  const Compiled& stages() const override { return builds().each.front(); }
  std::string graph() const override { return ir::print(*graph_); }
  std::string options() const override { return options_json(options_); }
  Status evaluate(const Prepared::Impl& prepared,
                  std::span<const BufferView> buffers) const noexcept override {
    return run_reference(*graph_, prepared, buffers);
  }

  const CompiledBuilds& builds() const {
    std::call_once(compiled_made_, [this] {
      if (!compiled_) compiled_ = std::make_shared<const CompiledBuilds>(make_());
    });
    return *compiled_;
  }

 private:
  const std::shared_ptr<const ir::Graph> graph_;  // as the user built it
  const CompileOptions options_;
  const std::function<CompiledBuilds()> make_;
  mutable std::once_flag compiled_made_, text_made_;
  mutable std::shared_ptr<const CompiledBuilds> compiled_;
  mutable std::string text_;
};

using Load = std::function<std::shared_ptr<const Module>(const codegen::Source&)>;

/// Says which custom kernel is at fault, where one is.
std::shared_ptr<const Module> loaded_by(const Load& load, const Compiled& compiled) {
  if (compiled.source.kernels.empty()) return nullptr;
  try {
    return load(compiled.source);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) check_custom_kernels(compiled, load);
    throw;
  }
}

/// The kernels of one of the builds.
std::shared_ptr<const Module> loaded(const std::shared_ptr<const Compiled>& compiled, Backend& backend,
                                     int threads) {
  if (compiled->source.kernels.empty()) return nullptr;
  CompileCache& cache = backend.toolchain()->cache();
  // The key keeps the stages alive: the text is theirs.
  ModuleKey key({compiled, &compiled->source}, backend.toolchain()->key());
  if (auto found = cache.modules.find(key)) return found;
  const Load load = [&](const codegen::Source& source) { return backend.load(source, threads); };
  std::shared_ptr<const Module> module = loaded_by(load, *compiled);
  cache.modules.insert(std::move(key), module);
  return module;
}

/// Builds without their functions; `load` gives the kernels of each.
std::vector<Build> builds_of(
    const ir::Graph& graph, const std::shared_ptr<const CompiledBuilds>& compiled,
    const std::function<std::shared_ptr<const Module>(const std::shared_ptr<const Compiled>&)>& load) {
  std::vector<Build> builds;
  for (const Compiled& each : compiled->each) {
    const schedule::Version& region = compiled->regions.each[builds.size()];
    Program program = program_of(graph_of(graph, region), each);
    if (builds.empty()) {  // what it checks of the dims, it checks for all
      program.builds = compiled->regions.table;
      if (!region.conditions.empty()) program.signature = signature_of(graph, analysis::guards_of(graph));
    }
    verify(program);  // before its kernels are compiled
    builds.push_back({std::make_shared<const Program>(std::move(program)), load({compiled, &each})});
  }
  return builds;
}

CompiledGraph compiled_graph(std::shared_ptr<const ir::Graph> graph, CompiledBuilds compiled,
                             Backend& backend, const CompileOptions& options) {
  auto stages = std::make_shared<const CompiledBuilds>(std::move(compiled));
  std::vector<Build> builds = builds_of(*graph, stages, [&](const std::shared_ptr<const Compiled>& each) {
    return loaded(each, backend, options.threads);
  });
  return {std::make_shared<const Stages>(std::move(graph), std::move(stages), options), std::move(builds)};
}

/// What an earlier process left for this graph, if it can be loaded.
std::optional<CompiledGraph> from_disk(const DiskCache& disk, const std::string& key,
                                       const std::shared_ptr<const ir::Graph>& graph, Backend& backend,
                                       const std::function<CompiledBuilds()>& make,
                                       const CompileOptions& options) {
  std::optional<SavedTarget> found = disk.find(key);
  if (!found) return std::nullopt;
  try {
    return CompiledGraph{std::make_shared<const Stages>(graph, make, options),
                         loaded_builds(runnable(std::move(*found), disk.directory()), backend)};
  } catch (const Error&) {
    return std::nullopt;  // whatever is wrong with it: a new one is made, and replaces it
  }
}

/// What the options ask of the pipeline on this device.
PipelineOptions options_on(Backend& backend, const CompileOptions& options) {
  PipelineOptions pipeline = pipeline_options(options);
  pipeline.designs = store_in(backend.toolchain()->cache().designs);
  const bool numbers =
      pipeline.decisions && pipeline.decisions->measured && !pipeline.decisions->gemms.empty();
  if (numbers) pipeline.gemm_library = backend.gemm_library();
  return pipeline;
}

CompiledGraph made_of(std::shared_ptr<const ir::Graph> graph, Backend& backend,
                      const CompileOptions& options) {
  const PipelineOptions pipeline = options_on(backend, options);
  const auto make = [graph, pipeline, target = backend.target()] {
    return run_builds(*graph, target, pipeline);
  };
  if (!options.cache) return compiled_graph(std::move(graph), make(), backend, options);
  const DiskCache disk = DiskCache::open();
  CompileCache& cache = backend.toolchain()->cache();
  if (disk.directory().empty()) {
    cache.note_no_disk(disk.unused());
    return compiled_graph(std::move(graph), make(), backend, options);
  }
  const std::string key = cache_key(*graph, backend, options);
  if (auto found = from_disk(disk, key, graph, backend, make, options)) {
    ++cache.disk_hits;
    return std::move(*found);
  }
  ++cache.disk_misses;
  CompiledGraph made = compiled_graph(graph, make(), backend, options);
  cache.note_disk(disk.insert(key, fmt::format("{} for {}", graph->name, backend.target().name),
                              saved_target(backend.fits(), made.builds)));
  return made;
}

std::shared_ptr<const CompiledBuilds> one_build(Compiled compiled) {
  auto builds = std::make_shared<CompiledBuilds>();
  builds->regions.each.emplace_back();
  builds->each.push_back(std::move(compiled));
  return builds;
}

/// The reference device has no kernels: it evaluates the graph.
Executable evaluated(std::shared_ptr<const ir::Graph> graph, const Device& device) {
  Compiled compiled;
  compiled.guards = analysis::guards_of(*graph);
  compiled.graph = *graph;
  auto program = std::make_shared<Program>();
  program->signature = signature_of(*graph, compiled.guards);
  return make_executable(device, std::make_shared<Stages>(std::move(graph), one_build(std::move(compiled))),
                         {{std::move(program)}});
}

}  // namespace

Executable make_executable(ir::Graph graph, Compiled compiled, const Device& device,
                           std::unique_ptr<Module> module) {
  auto user = std::make_shared<const ir::Graph>(std::move(graph));
  if (device.kind() == DeviceKind::reference) return evaluated(std::move(user), device);
  CompiledBuilds builds{.regions = {.each = {{}}}, .each = {}};
  builds.each.push_back(std::move(compiled));
  return make_executable(std::move(user), std::move(builds), device, std::move(module));
}

Executable make_executable(std::shared_ptr<const ir::Graph> graph, CompiledBuilds compiled,
                           const Device& device, std::unique_ptr<Module> module) {
  for (const Compiled& each : compiled.each) schedule::verify(each.plan);
  auto stages = std::make_shared<const CompiledBuilds>(std::move(compiled));
  const std::shared_ptr<const Module> own = std::move(module);
  std::vector<Build> builds = builds_of(*graph, stages, [&](const std::shared_ptr<const Compiled>& each) {
    return own ? own : loaded(each, *backend_of(device), 0);
  });
  return make_executable(device, std::make_shared<const Stages>(std::move(graph), std::move(stages)),
                         std::move(builds));
}

Executable make_executable(Compiled compiled, const Device& device) {
  ir::Graph graph = compiled.graph;
  return make_executable(std::move(graph), std::move(compiled), device);
}

const CompiledBuilds& compiled_builds(const Executable& executable) {
  static_cast<void>(stages_of(executable));  // says that there are none
  return static_cast<const Stages&>(*impl_of(executable)->origin).builds();
}

Executable compile_candidate(const Graph& graph, const Device& device, const CompileOptions& options,
                             const std::function<void(PipelineOptions&)>& change) {
  contract::forbid("compiles");
  Backend& backend = *backend_of(device);
  const Toolchain& toolchain = *backend.toolchain();
  const auto user = std::make_shared<const ir::Graph>(ir_of(graph));
  CompileOptions resolved = options;
  change_experiments(resolved).fault = fault_text(options);
  PipelineOptions how = options_on(backend, resolved);
  if (change) change(how);
  const auto stages = one_build(run_pipeline(*user, backend.target(), how));
  const Load load = [&](const codegen::Source& source) {
    Binary binary = build_new_kernels(toolchain, source, resolved.threads);
    return backend.load_binary(std::make_shared<const Binary>(std::move(binary)));
  };
  std::vector<Build> builds = builds_of(
      *user, stages, [&](const std::shared_ptr<const Compiled>& each) { return loaded_by(load, *each); });
  return make_executable(device, std::make_shared<const Stages>(user, stages, resolved), std::move(builds));
}

}  // namespace runtime

inline namespace v0 {

Executable compile(const Graph& graph, const Device& device, const CompileOptions& options) {
  runtime::contract::forbid("compiles");
  const ir::Graph& ir = ir_of(graph);
  ir::verify(ir, ErrorKind::internal);
  if (ir.outputs.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("graph '{}' has no outputs: there is nothing to compute", ir.name),
                 .hint = "name a result with Graph::output"});
  }
  const auto user = std::make_shared<const ir::Graph>(ir);
  if (device.kind() == DeviceKind::reference) return runtime::evaluated(user, device);
  runtime::Backend& backend = *backend_of(device);
  runtime::CompileCache& cache = backend.toolchain()->cache();
  CompileOptions resolved = options;
  change_experiments(resolved).fault =
      fault_text(options);  // what is kept in this process is for this FUSE_FAULT
  runtime::GraphKey key(user, resolved);
  std::shared_ptr<const runtime::CompiledGraph> made = cache.stages.find(key);
  if (!made) {
    made = std::make_shared<const runtime::CompiledGraph>(runtime::made_of(user, backend, resolved));
    cache.stages.insert(std::move(key), made);
  }
  return runtime::make_executable(device, made->origin, made->builds);
}

}  // namespace v0
}  // namespace fuse
