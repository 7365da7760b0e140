// compile's second half: an executable from the pipeline's stages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "compile/builds/builds.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "runtime/execute/executable_impl.hpp"

namespace fuse::runtime {

/// An executable from stages that were made elsewhere, for tests; `graph` is what the user built, `module`
/// has the source's kernels and is loaded where it is null. Throws internal when plan, source and graph do
/// not fit each other.
Executable make_executable(ir::Graph graph, Compiled compiled, const Device& device,
                           std::unique_ptr<Module> module = nullptr);
Executable make_executable(Compiled compiled, const Device& device);
/// The same with several builds; `module` has the kernels of all.
Executable make_executable(std::shared_ptr<const ir::Graph> graph, CompiledBuilds compiled,
                           const Device& device, std::unique_ptr<Module> module = nullptr);

/// As fuse::compile, for one of many ways to run a graph: kernels that an earlier one had are not compiled
/// again, and nothing is kept that would displace what other executables share.
/// `change`: what else is asked of the pipeline.
Executable compile_candidate(const Graph&, const Device&, const CompileOptions&,
                             const std::function<void(PipelineOptions&)>& change = {});

/// What an executable was compiled to. Throws unsupported for one that was loaded.
const CompiledBuilds& compiled_builds(const Executable&);

/// Executable::explain, from stages.
std::string explain(const Executable::Impl&, const CompiledBuilds&);

}  // namespace fuse::runtime
