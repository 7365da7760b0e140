// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/text/custom_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "codegen_cuda/text/identifiers.hpp"

namespace fuse::codegen {
namespace {

using ir::NodeId;

/// The kernel, then its fallback launches, which have its parameters but the counter.
std::vector<CustomText> texts_of(const ir::Graph& graph, NodeId id) {
  const ir::Node& node = graph[id];
  const auto& kernel = ir::attr<ir::CustomAttr>(node);
  CustomText text{.name = kernel.name,
                  .source = kernel.source,
                  .block_threads = static_cast<int>(kernel.threads),
                  .shared_bytes = kernel.shared_bytes,
                  .call = id,
                  .cooperative = kernel.grid_barrier};
  for (const NodeId operand : node.operands) {
    text.params.push_back({KernelParam::Kind::buffer, fmt::format("operand{}", text.params.size()),
                           graph[operand].type.dtype, false});
  }
  text.params.push_back({KernelParam::Kind::buffer, "result", node.type.dtype, true});
  const std::size_t counter_at = text.params.size();
  if (kernel.grid_barrier) text.params.push_back({KernelParam::Kind::buffer, "barrier", i32, true});
  for (std::size_t i = 0; i < kernel.extents.size(); ++i) {
    text.params.push_back({KernelParam::Kind::extent, fmt::format("extent{}", i), i64, false});
  }
  const SourceLocation& at = graph.location(node);
  text.origin = {graph.value_name(id) + " custom_call", graph.scope_path(node.scope),
                 at.file.empty() ? "" : fmt::format("{}:{}", at.file, at.line)};
  std::vector<CustomText> texts = {text};
  if (kernel.parts.empty()) return texts;
  text.cooperative = false;
  text.params.erase(text.params.begin() + static_cast<std::ptrdiff_t>(counter_at));
  for (std::size_t i = 0; i < kernel.parts.size(); ++i) {
    text.name = kernel.part_name(i);
    text.source = kernel.parts[i];
    texts.push_back(text);
  }
  return texts;
}

bool equal(const CustomText& a, const CustomText& b) {
  return a.source == b.source && a.block_threads == b.block_threads && a.shared_bytes == b.shared_bytes &&
         a.cooperative == b.cooperative && a.params.size() == b.params.size() &&
         std::equal(a.params.begin(), a.params.end(), b.params.begin(),
                    [](const KernelParam& x, const KernelParam& y) {
                      return x.dtype == y.dtype && x.kind == y.kind;
                    });
}

}  // namespace

std::vector<CustomText> custom_texts(const ir::Graph& graph, const std::vector<schedule::Segment>& segments,
                                     const std::vector<kernel::Kernel>& emitted) {
  std::vector<CustomText> texts;
  std::map<std::string, std::size_t> known;
  std::unordered_set<std::string_view> ours;
  for (const kernel::Kernel& kernel : emitted) ours.insert(kernel.name);
  for (const schedule::Segment& segment : segments) {
    if (segment.kind != schedule::Segment::Kind::custom) continue;
    const auto refuse = [&](std::string message, std::string hint) {
      throw Error({.code = ErrorCode::duplicate_name,
                   .message = std::move(message),
                   .op = "custom_call",
                   .location = graph.location(graph[segment.root]),
                   .hint = std::move(hint)});
    };
    for (CustomText& text : texts_of(graph, segment.root)) {
      if (ours.contains(text.name))
        refuse(fmt::format("fuse names a kernel '{}' itself", text.name), "give yours another name");
      if (c_identifier(text.name) != text.name) {
        refuse(
            fmt::format("the kernel's name '{}' is no identifier, or the device dialect uses it", text.name),
            fmt::format("'{}' is free", c_identifier(text.name)));
      }
      const auto [found, fresh] = known.emplace(text.name, texts.size());
      if (!fresh && !equal(texts[found->second], text)) {
        refuse(fmt::format("two kernels are called '{}' and differ in text, block or types", text.name),
               "give each a name of its own");
      }
      if (fresh) texts.push_back(std::move(text));
    }
  }
  return texts;
}

}  // namespace fuse::codegen
