// Explorers for several sets of dims. SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"

namespace fuse::test {
namespace {

Graph sentences() {
  Graph g("sentences");
  const Dim B = g.dim("B", {.min = 1, .max = 64}), S = g.dim("S", {.min = 1, .max = 4096});
  g.output("y", softmax(g.input("x", f32, {B, S}), -1));
  return g;
}

std::string message_of_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("dims go to the bucket with the fewest operations that has room", "[explore]") {
  const ExplorerBuckets buckets(sentences(), clocked_device(),
                                {{{"B", 8}, {"S", 83}}, {{"B", 8}, {"S", 13}}, {{"B", 2}, {"S", 30}}});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets.bucket_for({{"B", 8}, {"S", 13}}) == 1);
  CHECK(buckets.bucket_for({{"B", 1}, {"S", 1}}) == 2);  // 60 elements instead of 104
  CHECK(buckets.bucket_for({{"B", 1}, {"S", 31}}) == 0);
  CHECK(buckets.bucket_for({{"B", 3}, {"S", 14}}) == 0);
  CHECK(buckets.dims(1).at("S") == 13);
  const std::string full = message_of_error([&] { buckets.bucket_for({{"B", 9}, {"S", 13}}); });
  CHECK(full.find("none has room for B = 9, S = 13") != std::string::npos);
  CHECK(full.find("B = 8, S = 83; B = 8, S = 13; B = 2, S = 30") != std::string::npos);
}

TEST_CASE("buckets that make no sense are refused", "[explore]") {
  const Graph graph = sentences();
  const Device device = clocked_device();
  const auto error_for = [&](const std::vector<DimValues>& buckets) {
    return message_of_error([&] { ExplorerBuckets(graph, device, buckets); });
  };
  CHECK(error_for({}).find("there are none") != std::string::npos);
  CHECK(error_for({{{"B", 1}, {"S", 2}}, {{"B", 1}, {"S", 2}}}).find("B = 1, S = 2 is there twice") !=
        std::string::npos);
  CHECK(error_for({{{"B", 1}}}).find("S") != std::string::npos);
  CHECK(error_for({{{"B", 1}, {"S", 2}, {"T", 3}}}).find("no dim 'T'") != std::string::npos);
  CHECK(error_for({{{"B", 1}, {"S", 5000}}}).find("5000") != std::string::npos);
  ExplorerBuckets one(graph, device, {{{"B", 1}, {"S", 2}}});
  CHECK(message_of_error([&] { one.explorer(1); }).find("there is no bucket 1") != std::string::npos);
  CHECK(message_of_error([&] { one.bucket_for({{"S", 2}}); }).find("B") != std::string::npos);
}

TEST_CASE("each bucket keeps what is fastest for its dims", "[explore][emulated]") {
  const Device device = clocked_device();
  // Short rows are faster with few threads, long ones with many.
  runtime::plant_costs(*backend_of(device), [](const runtime::ClockedWork& work) {
    if (work.kernel.empty()) return 1e-9;
    const double threads = work.residency.threads;
    return work.bytes < 10'000 ? 1e-6 * threads : 1e-3 / threads;
  });
  ExplorerBuckets buckets(sentences(), device, {{{"B", 4}, {"S", 64}}, {{"B", 4}, {"S", 4096}}},
                          {.bits = Bits::any, .max_cuts = 1});
  std::vector<std::string> tunings;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    Explorer& explorer = buckets.explorer(bucket);
    CHECK(&explorer == &buckets.explorer(bucket));
    ExplorerBuffers own(explorer);
    run_to_end(explorer, own);
    CHECK(explorer.progress().tuned_seconds <= explorer.progress().default_seconds);
    tunings.push_back(explorer.tuning().text());
  }
  const auto choices = [](const std::string& text) { return text.substr(text.find("{nest")); };
  CHECK(choices(tunings[0]) != choices(tunings[1]));
}

}  // namespace fuse::test
