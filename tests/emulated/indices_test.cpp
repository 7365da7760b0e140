// Device::Emulated::check_indices. SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

const std::string fault = "index 5 is none of 0 to 3, and would be clamped: block 0 thread ";

/// What a run of the graph says for these indices; "no error" where all of them name an element.
std::string said(const Graph& g, const std::vector<std::int64_t>& at, bool check_indices) {
  Session session(
      compile(g, Device::emulated({.profile = "tiny3", .checked = true, .check_indices = check_indices})));
  session.set("x", std::vector<float>{10, 11, 12, 13});
  session.set("at", at);
  return error_of([&] { session.run(); });
}

TEST_CASE("an index out of range is a fault where indices are checked, and else clamped",
          "[emulated][fault]") {
  Graph g("taken");
  const Tensor x = g.input("x", f32, {4}), at = g.input("at", i64, {3});
  g.output("y", gather(x, at, 0) * 2);
  const std::string text = said(g, {0, 5, 3}, true);
  INFO(text);
  CHECK(text.starts_with("kernel-fault: step 0, kernel 'taken_"));
  CHECK(text.find(fault) != std::string::npos);
  CHECK(text.find(" gather") != std::string::npos);
  CHECK(text.find("indices_test.cpp:") != std::string::npos);  // the line that built the op
  CHECK(said(g, {0, -1, 3}, true).find("index -1 is none of 0 to 3") != std::string::npos);
  CHECK(said(g, {0, 1, 3}, true) == "no error");
  CHECK(said(g, {0, 5, -7}, false) == "no error");
}

TEST_CASE("a start out of range is a fault where indices are checked", "[emulated][fault]") {
  Graph g("moved");
  const Tensor x = g.input("x", f32, {4}), at = g.input("at", i64, {});
  g.output("y", dynamic_slice(x, {at}, {1}) + 1);
  CHECK(said(g, {5}, true).find(fault) != std::string::npos);
  CHECK(said(g, {3}, true) == "no error");
  CHECK(said(g, {5}, false) == "no error");
}

TEST_CASE("indices are checked in checked mode alone", "[emulated]") {
  CHECK(error_of([] { Device::emulated({.check_indices = true}); }) ==
        "invalid-argument: the emulated device checks indices in checked mode alone\n"
        "  hint: set Device::Emulated::checked too");
}

}  // namespace
}  // namespace fuse::test
