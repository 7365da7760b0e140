// Versions of kernels in decisions: written, taken elsewhere, edited, and refused by line.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "decisions/decisions_support.hpp"
#include "runtime/device/backend.hpp"
#include "support/catch.hpp"
#include "support/error_info.hpp"

namespace fuse::test {
namespace {

Graph rows(const std::string& m = "M", const std::string& n = "N") {
  Graph g("rows_" + m);
  const Dim a = g.dim(m, {.min = 1, .max = 1 << 20}), b = g.dim(n, {.min = 1, .max = 1 << 20});
  g.output("y", softmax(g.input("x", f32, {a, b})));
  return g;
}

std::string stages_of(const Compiled& compiled) { return print(compiled.plan) + compiled.source.body; }

/// Without the names of dims and graphs, which kernels carry.
std::string tables_of(const Compiled& compiled) {
  std::string text;
  for (const schedule::VersionTable& table : compiled.plan.tables) text += to_string(table);
  for (const schedule::Schedule& each : compiled.schedules)
    for (const schedule::PhaseSchedule& phase : each.phases) text += phase.choices.to_string() + '\n';
  return text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The lines that begin with a word.
std::size_t lines(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find("\n" + word); at != std::string::npos; at = text.find("\n" + word, at + 1))
    ++count;
  return count;
}

TEST_CASE("versions are written, and give the same stages for a device of other speeds",
          "[decisions][versions]") {
  const Graph g = rows();
  const Compiled first = compiled_with(g, no_decisions(), false, "h200", 8);
  CHECK(first.plan.tables.empty());  // what the file does not say has one way to run
  PipelineOptions record = pipeline_options(CompileOptions{.builds = 1});
  record.record = true;
  const Target target = h200_target();
  const Compiled usual = run_pipeline(ir_of(g), target, record);
  REQUIRE(usual.plan.tables.size() == 1);
  const std::uint32_t count = usual.plan.tables[0].versions;
  REQUIRE(count > 3);
  const std::string text = decisions_text(usual);
  CHECK(lines(text, "versions ") == 1);
  CHECK(lines(text, "kernel ") == count);
  Target slower = target;
  slower.bandwidth /= 100;
  slower.launch_seconds *= 20;
  PipelineOptions told = record;
  told.decisions = schedule::parse_decisions(text);
  const Compiled again = run_pipeline(ir_of(g), slower, told);
  CHECK(stages_of(again) == stages_of(usual));
  CHECK(print(decisions_of(again, target)) == text);
  CHECK(again.recorded_segments == 1);
  // Without versions the entry says nothing.
  told.versions.most = 1;
  CHECK(run_pipeline(ir_of(g), target, told).plan.tables.empty());
  // Names count for nothing.
  const Graph renamed = rows("height", "width");
  told.versions.most = 8;
  const Compiled other = run_pipeline(ir_of(renamed), target, told);
  REQUIRE(other.plan.tables.size() == 1);
  CHECK(contains(to_string(other.plan.tables[0]), "height"));
  record.decisions.reset();
  CHECK(tables_of(other) == tables_of(run_pipeline(ir_of(renamed), target, record)));
}

TEST_CASE("an edited table is taken as it is", "[decisions][versions][emulated]") {
  const Graph g = rows();
  const Device device = Device::emulated({.optimization = 0});
  const Target& target = backend_of(device)->target();
  PipelineOptions record = pipeline_options(CompileOptions{.builds = 1});
  record.record = true;
  const schedule::Decisions all = decisions_of(run_pipeline(ir_of(g), target, record), target);
  schedule::Decisions edited = all;
  edited.versions[0].tests = {{"N <= 100", {.ends = true, .to = 0}, {.ends = true, .to = 1}}};
  const auto with_nest = [&](const std::string& part) {
    const auto& each = all.versions[0].each;
    const auto found = std::find_if(each.begin(), each.end(), [&](const auto& version) {
      return version.choices.to_string().find(part) != std::string::npos;
    });
    REQUIRE(found != each.end());
    return *found;
  };
  schedule::VersionsDecision::Version block = with_nest("c:warp"), threads = with_nest("r:lane");
  threads.hints = {{"N", 7}};
  block.hints = {{"M", 3}, {"N", 5000}};
  edited.versions[0].each = {threads, block};
  const Executable executable = compile(g, device, {.decisions = print(edited)});
  const schedule::Plan& plan = stages_of(executable).plan;
  REQUIRE(plan.tables.size() == 1);
  CHECK(to_string(plan.tables[0]) == "test 0: N <= 100  yes: version 0  no: version 1\n");
  for (const auto& [m, n] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 7}, {33, 100}, {2, 101}, {5, 3000}}) {
    Session session(executable, {{"M", m}, {"N", n}}),
        reference(compile(g, Device::reference()), {{"M", m}, {"N", n}});
    std::vector<float> x(static_cast<std::size_t>(m * n));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 4;
    session.set("x", x);
    reference.set("x", x);
    session.run();
    reference.run();
    const std::vector<float> got = session.get<float>("y"), wanted = reference.get<float>("y");
    float worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(got[i] - wanted[i]) / wanted[i]);
    CHECK(worst < 1e-5F);
  }
}

TEST_CASE("a table that is wrong is refused, with its line", "[decisions][versions]") {
  const Graph g = rows();
  PipelineOptions record = pipeline_options(CompileOptions{.versions = 2, .builds = 1});
  record.record = true;
  const std::string text = decisions_text(run_pipeline(ir_of(g), h200_target(), record));
  const std::size_t start = text.find("versions "), open = text.find('{', start),
                    end = text.find('\n', start);
  const std::string key = text.substr(start + 9, 16), body = text.substr(open + 1, end - open - 2);
  INFO(text);
  const std::string line =
      fmt::format("decisions: line {}",
                  std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n') + 1);
  const auto with_body = [&](const std::string& other) {
    return refusal_of([&] { compiled_with(g, replaced(text, body, other), false, "h200", 8); });
  };
  CHECK(with_body(body) == "no error");
  const auto is = [&](const std::string& refusal, const std::string& what,
                      const std::string& code = "parse") {
    CAPTURE(refusal);
    CHECK(refusal.starts_with(code + ": " + line));
    CHECK(contains(refusal, what));
  };
  is(with_body("M, N"), "fewer than two versions");
  is(with_body("M, N; N <= 8 ? v0 : v2; v0; v1"), "leads");
  is(with_body("M, N; N <= 8 ? v0 : 0; v0; v1"), "test");
  is(with_body("M, N; N <= 8 ? v0 : v0; v0; v1"), "version");
  is(with_body("M, N; N <= 8 ? v0; v0; v1"), "does not lead to two places");
  is(with_body("M, N; N <= 8 ? v0 : v1; v1; v0"), "version 1 stands where version 0 has to");
  is(with_body("M, N; N <= 8 ? v0 : x; v0; v1"), "'x' is no number");
  is(with_body("M, N; N <= 8 ? v0 : v99; v0; v1"), "at most 16");
  is(with_body("M, N; N <= 8 ? v0 : v1; v0 K = 3; v1"), "there is no symbol 'K'");
  is(with_body("M, N; N <= 8 ? v0 : v1; v0 M; v1"), "'M' is no hint");
  CHECK(with_body("M, N; N <= 8 ? v0 : v1; v0 for all; v1 for all M = 3") == "no error");
  is(with_body("M, N; K <= 8 ? v0 : v1; v0; v1"), "the test 'K <= 8'", "invalid-argument");
  is(with_body("M, N; N = 8 ? v0 : v1; v0; v1"), "the test 'N = 8'", "invalid-argument");
  is(with_body("M; M <= 8 ? v0 : v1; v0; v1"), "versions of 1 symbols, and the graph has 2",
     "invalid-argument");
  is(with_body("M, N; N <= 0 ? v0 : v1; v0; v1"), "no dims can take one of its versions", "invalid-argument");
  const auto whole = [&](const std::string& other) {
    return refusal_of([&] { compiled_with(g, other, false, "h200", 8); });
  };
  CHECK(contains(whole(replaced(text, "kernel " + key + " v0", "kernel " + key + " v1")),
                 "has a line already"));
  CHECK(contains(whole(replaced(text, "kernel " + key + " v1", "kernel " + key + " v7")),
                 "no line has a version 7"));
  CHECK(contains(whole(text.substr(0, text.rfind("kernel " + key))),
                 "version 1 of kernel " + key + " has no line"));
  const std::size_t last = text.rfind("{nest = ");
  const std::string nest = text.substr(last, text.find('}', last) + 1 - last);
  CHECK(contains(whole(replaced(text, nest, "{nest = r:grid c:lane32 c:serial c:lane2}")), "version"));
}

}  // namespace
}  // namespace fuse::test
