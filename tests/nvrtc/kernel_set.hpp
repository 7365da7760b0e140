// KernelSet: the distinct kernels of many graphs, for one compilation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <fuse/fuse.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "codegen_cuda/text/print_cuda.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"

namespace fuse::test {

/// Kernels by their text without names of kernels and without comments.
class KernelSet {
 public:
  /// Of values by themselves, and stitched.
  void add(const Graph& graph, const Target& target) {
    for (const bool stitch : {false, true})
      add(run_pipeline(ir_of(graph), target, {.partition = {.stitch = stitch}}));
  }

  void add(const Compiled& compiled) {
    for (kernel::Kernel kernel : compiled.kernels) {
      ++seen_;
      const std::string name = std::exchange(kernel.name, "k");
      if (!texts_.insert(code_of(codegen::print_cuda("k", {kernel}).body)).second) continue;
      kernel.name = "k" + std::to_string(kernels_.size()) + "_" + name;
      kernels_.push_back(std::move(kernel));
    }
  }

  std::size_t size() const { return kernels_.size(); }
  std::size_t seen() const { return seen_; }

  /// Every second kernel is for sm_80, so that all ops and types meet both, in half of the time that all
  /// kernels for both would take; clusters are of sm_90. In programs of at most `most` kernels each.
  std::vector<codegen::Source> programs(std::size_t most, int arch) const {
    std::vector<kernel::Kernel> able;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const bool older = i % 2 == 0 && kernels_[i].cluster == 1;
      if (older == (arch == 80)) able.push_back(kernels_[i]);
    }
    std::vector<codegen::Source> result;
    for (std::size_t first = 0; first < able.size(); first += most) {
      const auto begin = able.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = able.begin() + static_cast<std::ptrdiff_t>(std::min(able.size(), first + most));
      result.push_back(codegen::print_cuda("sweep" + std::to_string(result.size()), {begin, end}));
    }
    return result;
  }

 private:
  static std::string code_of(const std::string& body) {
    std::string code;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = std::min(body.find('\n', at), body.size());
      std::string line = body.substr(at, end - at);
      line.resize(std::min(line.find("//"), line.size()));
      line.resize(line.find_last_not_of(' ') + 1);
      code += line + '\n';
      at = end + 1;
    }
    return code;
  }

  std::vector<kernel::Kernel> kernels_;
  std::set<std::string> texts_;
  std::size_t seen_ = 0;
};

/// The text of one kernel of a program, for a failure's message.
inline std::string text_of_kernel(const codegen::Source& source, const std::string& name) {
  const std::size_t at = source.body.find(") " + name + "(");
  if (at == std::string::npos) return "?";
  const std::size_t start = source.body.rfind("\n//", at), end = source.body.find("\n}\n", at);
  return source.body.substr(start == std::string::npos ? 0 : start + 1, end + 3 - start);
}

}  // namespace fuse::test
