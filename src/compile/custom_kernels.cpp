// SPDX-License-Identifier: Apache-2.0
#include "compile/custom_kernels.hpp"

#include <fmt/format.h>

#include "codegen_cuda/text/custom_text.hpp"
#include "codegen_cuda/text/print_cuda.hpp"

namespace fuse::runtime {
namespace {

[[noreturn]] void refuse_kernel(const ir::Graph& graph, const codegen::CustomText& text, int first_line,
                                const std::string& why) {
  const ir::Node& call = graph[text.call];
  std::vector<std::string> shapes;
  for (const ir::NodeId operand : call.operands) shapes.push_back(ir::to_string(graph[operand].type));
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("the kernel '{}' does not compile: {}", text.name, why),
       .op = std::string(to_string(call.op)),
       .shapes = std::move(shapes),
       .location = graph.location(call),
       .hint = fmt::format("correct its text, which begins at line {} of {}.cu", first_line, text.name)});
}

}  // namespace

void check_custom_kernels(const Compiled& compiled,
                          const std::function<void(const codegen::Source&)>& build) {
  for (const codegen::CustomText& text :
       codegen::custom_texts(compiled.graph, compiled.partition.segments, compiled.kernels)) {
    const codegen::Source alone = codegen::print_cuda(text.name, {}, {text});
    try {
      build(alone);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::internal) throw;
      refuse_kernel(compiled.graph, text, alone.body_line(), error.info().message);
    }
  }
}

}  // namespace fuse::runtime
