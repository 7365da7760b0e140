// SPDX-License-Identifier: Apache-2.0
#include "counts_json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/embedded.hpp"
#include "report/schema_check.hpp"

namespace fuse::bench::sass {
namespace {

constexpr int version = 1;
constexpr double worse = 1.03;

Json access_json(const Access& access) {
  return {{"buffer", access.buffer},
          {"stores", access.stores},
          {"bytes", access.bytes},
          {"issues", figure(access.issues)},
          {"narrow", narrow(access)}};
}

Json kernel_json(const KernelCount& kernel) {
  Json busy = Json::object(), accesses = Json::array(), slow = Json::array();
  for (std::size_t i = 0; i < pipes; ++i) {
    if (kernel.busy[i] > 0) busy[std::string(to_string(static_cast<Pipe>(i)))] = figure(kernel.busy[i]);
  }
  for (const Access& access : kernel.accesses) accesses.push_back(access_json(access));
  for (const Unweighted& each : kernel.slow)
    slow.push_back({{"routine", each.routine}, {"calls", each.calls}, {"instructions", each.instructions}});
  return {{"name", kernel.name},
          {"grid", kernel.grid},
          {"threads", kernel.threads},
          {"registers", kernel.registers},
          {"spilled_bytes", kernel.spilled_bytes},
          {"shared_bytes", kernel.shared_bytes},
          {"blocks_per_sm", kernel.blocks_per_sm},
          {"waves", figure(kernel.waves)},
          {"last_wave", figure(kernel.last_wave)},
          {"bytes_in_flight", kernel.bytes_in_flight},
          {"moved_bytes", kernel.moved_bytes},
          {"slots", figure(kernel.slots)},
          {"busy", busy},
          {"cycles", figure(kernel.cycles)},
          {"bound", to_string(kernel.bound)},
          {"accesses", accesses},
          {"slow", slow},
          {"waits", kernel.waits}};
}

/// GPUs of one profile have the same kernels.
Json count_json(const CaseCount& count, const Gpu& gpu) {
  Json kernels = Json::array();
  if (count.kernels.size() <= listed_kernels && gpu.name == gpu.profile) {
    for (const KernelCount& kernel : count.kernels) kernels.push_back(kernel_json(kernel));
  }
  return {{"predicted_share_of_copy", figure(count.predicted_share_of_copy)},
          {"budget", figure(count.budget)},
          {"slots", figure(count.slots)},
          {"cycles", figure(count.cycles)},
          {"bound", to_string(count.longest().bound)},
          {"share", figure(count.share)},
          {"missing", missing(count)},
          {"kernel_count", count.kernels.size()},
          {"kernels", kernels}};
}

/// The narrowest access of each buffer, by kernel.
std::map<std::string, int> widths_of(const Json& count) {
  std::map<std::string, int> widths;
  std::size_t kernel = 0;
  for (const Json& each : count.at("kernels")) {
    for (const Json& access : each.at("accesses")) {
      const std::string key =
          fmt::format("kernel {} {} {}", kernel, access.at("stores").get<bool>() ? "stores" : "loads",
                      access.at("buffer").get<std::string>());
      const int bytes = access.at("bytes");
      const auto at = widths.try_emplace(key, bytes).first;
      at->second = std::min(at->second, bytes);
    }
    ++kernel;
  }
  return widths;
}

}  // namespace

Json to_json(const std::vector<CaseResult>& results, const std::vector<GoalResult>& goals,
             const Versions& versions) {
  Json cases = Json::array(), failed = Json::array(), gpu_list = Json::array(), goal_list = Json::array();
  for (const Gpu& gpu : gpus()) {
    gpu_list.push_back({{"name", gpu.name},
                        {"profile", gpu.profile},
                        {"sms", gpu.sms},
                        {"clock", gpu.clock},
                        {"copy", gpu.copy},
                        {"instructions_per_byte", figure(budget_of_byte(gpu))},
                        {"source", gpu.source}});
  }
  for (const GoalResult& goal : goals)
    goal_list.push_back({{"goal", goal.name}, {"met", goal.met}, {"worst", goal.worst}, {"why", goal.why}});
  for (const CaseResult& result : results) {
    for (const auto& [gpu, why] : result.failed)
      failed.push_back({{"name", result.of.name}, {"gpu", gpu}, {"why", why}});
    if (result.on.empty()) continue;
    Json on = Json::object();
    for (const auto& [gpu, count] : result.on) on[gpu] = count_json(count, gpu_of(gpu));
    const CaseCount& any = result.on.begin()->second;
    cases.push_back({{"name", result.of.name},
                     {"builder", result.of.builder},
                     {"dtype", result.of.dtype},
                     {"dims", result.of.dims},
                     {"elements", any.elements},
                     {"floor_bytes", any.floor_bytes},
                     {"gpus", on}});
  }
  return {{"version", version},
          {"program", "sass_table"},
          {"about",
           "Counts of instructions from SASS, and what follows by a formula. Nothing here is measured. "
           "Cycles and "
           "slots: of a sub-partition for one element, times 32."},
          {"nvrtc", versions.nvrtc},
          {"nvdisasm", versions.nvdisasm},
          {"gpus", gpu_list},
          {"goals", goal_list},
          {"cases", cases},
          {"failed", failed}};
}

std::string one_case_a_line(const Json& counts) {
  std::string text = "{\n";
  for (const auto& [key, value] : counts.items()) {
    text += fmt::format("{}{}: ", text.size() > 2 ? ",\n" : "", Json(key).dump());
    if (!value.is_array()) {
      text += value.dump();
      continue;
    }
    text += "[";
    for (std::size_t i = 0; i < value.size(); ++i) text += (i > 0 ? ",\n  " : "\n  ") + value[i].dump();
    text += "]";
  }
  return text + "\n}\n";
}

std::vector<std::string> schema_errors(const Json& counts) {
  return bench::schema_errors(counts, Json::parse(sass_schema_json()));
}

Versions versions_of(const Json& counts) { return {counts.at("nvrtc"), counts.at("nvdisasm")}; }

std::vector<std::string> regressions(const Json& committed, const Json& now) {
  std::map<std::string, const Json*> known;
  for (const Json& each : committed.at("cases")) known[each.at("name")] = &each.at("gpus");
  std::vector<std::string> found;
  for (const Json& each : now.at("cases")) {
    const std::string name = each.at("name");
    const auto at = known.find(name);
    if (at == known.end()) {
      found.push_back(name + ": is not in the committed counts");
      continue;
    }
    for (const auto& [gpu, count] : each.at("gpus").items()) {
      if (!at->second->contains(gpu)) continue;
      const Json& before = at->second->at(gpu);
      const double was = before.at("cycles"), is = count.at("cycles");
      if (is > was * worse)
        found.push_back(fmt::format("{} on {}: {:.2f} cycles an element, {:.2f} before", name, gpu, is, was));
      const std::map<std::string, int> old_widths = widths_of(before);
      for (const auto& [access, bytes] : widths_of(count)) {
        const auto old_width = old_widths.find(access);
        if (old_width != old_widths.end() && bytes < old_width->second)
          found.push_back(fmt::format("{} on {}: {} by {} B, by {} B before", name, gpu, access, bytes,
                                      old_width->second));
      }
    }
  }
  for (const Json& failure : now.at("failed"))
    found.push_back(failure.at("name").get<std::string>() + ": " + failure.at("why").get<std::string>());
  return found;
}

}  // namespace fuse::bench::sass
