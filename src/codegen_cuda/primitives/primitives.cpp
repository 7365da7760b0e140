// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/primitives.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codegen_cuda/primitives/table.hpp"
#include "ir/graph/costly_ops.hpp"
#include "plan/emulated_abi.hpp"

namespace fuse::codegen {
namespace {

std::vector<Primitive> make_table() {
  std::vector<Primitive> table;
  for (const auto& part :
       {memory_primitives, barrier_primitives, arithmetic_primitives, special_primitives, division_primitives,
        conversion_primitives, pair_primitives, random_primitives, warp_primitives}) {
    for (Primitive& primitive : part()) table.push_back(std::move(primitive));
  }
  return table;
}

// In checked mode pointers carry what they point to, and each access asks the engine first.
std::string_view host_body(const Primitive& p, bool checked) {
  return checked && !p.checked_host.empty() ? p.checked_host : p.host;
}

bool is_member(const Primitive& p) { return p.member || p.communicates; }

// In checked mode what kernels call for costly ops is counted first.
std::string counted_calls() {
  std::string text;
  int number = 0;
  for (const ir::CostlyOp& op : ir::costly_ops()) {
    for (const std::string& call : op.calls)
      text += "template <class... A> auto " + call + "(A... a) { call_->count_op(call_->runner, " +
              std::to_string(number) + "); return ::" + call + "(a...); }\n";
    ++number;
  }
  return text;
}

// In checked mode the engine is told of each index that names no element.
constexpr std::string_view checked_indices =
    R"(long long clamped_index(long long i, long long n, int line = __builtin_LINE()) {
  if (i < 0 || i >= n) call_->outside(call_->runner, i, n, line);
  return ::clamped_index(i, n);
}
)";

}  // namespace

const std::vector<Primitive>& primitives() {
  static const std::vector<Primitive> table = make_table();
  return table;
}

const Primitive* find_primitive(std::string_view name) {
  if (name == "FUSE_KERNEL") name = "kernel";
  if (name == "FUSE_CLUSTER") name = "cluster_size";
  if (name == "FUSE_SHARED") name = "shared";
  if (name == "FUSE_SHARED_VECTORS") name = "shared_vectors";
  if (name == "FUSE_LOCAL") name = "local";
  // Every word of every kernel is looked up.
  static const std::unordered_map<std::string_view, const Primitive*> by_name = [] {
    std::unordered_map<std::string_view, const Primitive*> result;
    for (const Primitive& primitive : primitives()) result.emplace(primitive.name, &primitive);
    return result;
  }();
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

std::string cuda_prelude(const std::vector<std::string>& used) {
  const auto& table = primitives();
  std::vector<bool> wanted(table.size());
  const auto want = [&](std::string_view name) {
    if (const Primitive* p = find_primitive(name)) wanted[static_cast<std::size_t>(p - table.data())] = true;
  };
  want("kernel");
  for (const std::string& name : used) want(name);
  // What a row needs stands before it, so one backward sweep closes the set.
  for (std::size_t i = table.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    for (std::string_view name : table[i].needs) want(name);
  }
  const auto has = [&](std::string_view name) {
    return wanted[static_cast<std::size_t>(find_primitive(name) - table.data())];
  };
  const bool across_blocks = has("group_barrier") || has("cluster_barrier") || has("cluster_shared_barrier");
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Primitive& p = table[i];
    if (wanted[i]) text += across_blocks && !p.cuda_across_blocks.empty() ? p.cuda_across_blocks : p.cuda;
  }
  return text + "\n";
}

std::string host_functions() {
  std::string text(host_math);
  text += "namespace {\n";
  for (const Primitive& p : primitives()) {
    if (!is_member(p)) text += p.host;
  }
  return text + "}  // namespace\n";
}

std::string host_prelude(bool checked) {
  std::string text(runtime::emulated::abi_text);
  text += host_math;
  text += "namespace {\n";
  for (const Primitive& p : primitives()) {
    if (!is_member(p)) text += host_body(p, checked);
  }
  text += host_device;
  for (const Primitive& p : primitives()) {
    if (is_member(p)) text += host_body(p, checked);
  }
  if (checked) text.append(counted_calls()).append(checked_indices);
  return text + "};\n}  // namespace\n";
}

}  // namespace fuse::codegen
