// Divisions used more than once get a name; what a predicate guards stays behind it.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/name_divisions.hpp"

#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

kernel::Kernel named(const Graph& graph, const schedule::Choices& choices) {
  kernel::Kernel kernel = kernel::name_divisions(lowered(graph, choices));
  kernel::verify(kernel, target_profile("h200").shared_per_block);
  return kernel;
}

}  // namespace

TEST_CASE("name_divisions binds what is used twice", "[kernel]") {
  Graph g("norm");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 16, .hint = 64});
  const Tensor x = g.input("x", f32, {B, 100}), mean = g.input("mean", f32, {B, 1});
  const Tensor scale = g.input("scale", f32, {B, 1}), gamma = g.parameter("gamma", f32, {100});
  g.output("y", (x - mean) * scale * gamma);  // i / 100 twice, i % 100 once
  const schedule::Choices choices{.splits = schedule::nest_of_elements(256)};
  check_golden("kernel/name_divisions.txt", print(lowered(g, choices)) + print(named(g, choices)));
}

TEST_CASE("name_divisions leaves kernels without divisions alone, and its own result", "[kernel]") {
  const auto rows = lowered(sum_graph({37, 100}, {1}), {.splits = schedule::nest_of_lanes(128)});
  CHECK(print(kernel::name_divisions(rows)) == print(rows));
  Graph g("turn");
  g.output("y", reshape(transpose(g.input("x", f32, {7, 5, 3}), {2, 0, 1}), {21, 5}) + 1);
  const auto once = named(g, {.splits = schedule::nest_of_elements(256)});
  CHECK(print(kernel::name_divisions(once)) == print(once));
}

TEST_CASE("name_divisions keeps a division by an extent that may be 0 behind its predicate", "[kernel]") {
  Graph g("empty");
  const Dim T = g.dim("T", {.min = 0, .max = 100, .hint = 5});
  const Tensor a = g.input("a", f32, {T, 4}), b = g.input("b", f32, {T, 4}), rest = g.input("rest", f32, {8});
  const auto turned = [&](const Tensor& x) {
    return concat({reshape(transpose(x, {1, 0}), {4 * T}), rest}, 0);
  };
  g.output("y", turned(a) + turned(b));  // i / T, where i < 4 T
  const std::string text = print(named(g, {.splits = schedule::nest_of_elements(256)}));
  INFO(text);
  CHECK(text.find("= i / T\n") == std::string::npos);
  CHECK(text.find("= i % T\n") == std::string::npos);
}

namespace {

/// Arguments are e and m, which may be 0. The body of `for i in [0, 64) { store y[each] ... }` behind
/// name_divisions.
std::vector<std::string> stored(const std::vector<Dim>& each) {
  using namespace fuse::kernel;  // NOLINT
  Kernel k;
  k.name = "k";
  k.buffers = {{"y", f32, Space::global, 1000, true}};
  k.extents = {Dim::symbol("e", {1, 100}), Dim::symbol("m", {0, 100})};
  k.vars = {{"a", f32}};
  For loop{.name = "i", .begin = 0, .end = 64, .body = {}};
  for (const Dim& index : each) loop.body.push_back({Store{0, index, 0}});
  k.body = {{Let{0, Constant{}}}, {std::move(loop)}};
  std::istringstream text(print(name_divisions(k)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    const std::size_t begin = std::min({line.find("bind"), line.find("store")});
    if (begin != std::string::npos) lines.push_back(line.substr(begin));
  }
  return lines;
}

}  // namespace

TEST_CASE("name_divisions names inner divisions before what is divided of them", "[kernel]") {
  using Lines = std::vector<std::string>;
  const Dim i = Dim::index("i", 64), n = Dim::symbol("n", {1, 100}), m = Dim::symbol("m", {0, 100});
  CHECK(stored({i / 4, i + 1}) == Lines{"store y[i / 4] = a", "store y[i + 1] = a"});
  CHECK(stored({i / 4, 2 * (i / 4) + 1}) ==
        Lines{"bind i_div_4 = i / 4", "store y[i_div_4] = a", "store y[2 * i_div_4 + 1] = a"});
  CHECK(stored({i + 1, i % 4, i % 4 + 5}) == Lines{"store y[i + 1] = a", "bind i_mod_4 = i % 4",
                                                   "store y[i_mod_4] = a", "store y[i_mod_4 + 5] = a"});
  // Two at one place, one of the other, and one by another.
  CHECK(stored({i / 4 + i % 3, i / 4 + i % 3}) == Lines{"bind i_div_4 = i / 4", "bind i_mod_3 = i % 3",
                                                        "store y[i_div_4 + i_mod_3] = a",
                                                        "store y[i_div_4 + i_mod_3] = a"});
  CHECK(stored({(i / 4) % 3, i / 4}) ==
        Lines{"bind i_div_4 = i / 4", "store y[i_div_4 % 3] = a", "store y[i_div_4] = a"});
  CHECK(stored({(i / 4) % 3, (i / 4) % 3}) ==
        Lines{"bind i_div_4 = i / 4", "bind i_div_4_mod_3 = i_div_4 % 3", "store y[i_div_4_mod_3] = a",
              "store y[i_div_4_mod_3] = a"});
  CHECK(stored({(i + 1) / 4, (i + 1) / 4}) ==
        Lines{"bind at = (i + 1) / 4", "store y[at] = a", "store y[at] = a"});
  // By an argument, by what is none, by 0 perhaps; of what may be negative.
  const Dim e = Dim::symbol("e", {1, 100});
  CHECK(stored({i % e, i % e}) ==
        Lines{"bind i_mod_e = i % e", "store y[i_mod_e] = a", "store y[i_mod_e] = a"});
  CHECK(stored({(i + 1) % e, (i + 1) % e}) ==
        Lines{"bind at = (i + 1) % e", "store y[at] = a", "store y[at] = a"});
  CHECK(stored({i / (e / 2 + 1), e / 2}) ==
        Lines{"bind e_div_2 = e / 2", "store y[i / (e_div_2 + 1)] = a", "store y[e_div_2] = a"});
  for (const Dim& stays : {i % n, i % m, (i - e) / 4, (i / m) % 3, (i / m) % e})
    CHECK(stored({stays, stays}) ==
          Lines{"store y[" + stays.to_string() + "] = a", "store y[" + stays.to_string() + "] = a"});
}
