// Forms of generated programs: recognised, made on purpose, counted. SPDX-License-Identifier: Apache-2.0
#include "fuzz/forms.hpp"

#include "compile/compile.hpp"
#include "fuzz/grow/patterns.hpp"
#include "fuzz/judge/execute.hpp"
#include "fuzz/judge/run_results.hpp"
#include "support/catch.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::fuzz;  // NOLINT

namespace {

Forms forms_of_text(const char* text) {
  const Case c = parse_case(text, "test");
  return forms_of(c, run_pipeline(c.program.graph, target_profile(c.options.profile)));
}
bool has(Forms forms, Form form) { return (forms & bit(form)) != 0; }

}  // namespace

TEST_CASE("forms of donations are recognised", "[fuzz]") {
  const Forms crossed = forms_of_text(R"(graph @g(%x: f32[8], %y: f32[8]) -> (a: f32[8], b: f32[8]) {
  %a = max %x, %y : f32[8]
  %b = add %x, %y : f32[8]
  return a = %a into %x, b = %b into %y
})");
  CHECK(has(crossed, Form::donated_output));
  CHECK(has(crossed, Form::crossed_donation));
  CHECK_FALSE(has(crossed, Form::in_place_update));
  const Forms update = forms_of_text(R"(graph @g(%x: f32[64], %u: f32[8], %i: i64[]) -> (a: f32[64]) {
  %a = dynamic_update_slice %x, %u, %i : f32[64]
  return a = %a into %x
})");
  CHECK(has(update, Form::in_place_update));
  CHECK_FALSE(has(update, Form::crossed_donation));
}

TEST_CASE("forms of predicates, slices and concats are recognised", "[fuzz]") {
  const Forms nested =
      forms_of_text(R"(graph @g(%x: f32[4], %y: f32[4], %v: f32[]) -> (z: f32[10], s: f32[]) {
  %c = concat %x, %y {axis = 0} : f32[8]
  %z = pad %c, %v {low = [1], high = [1]} : f32[10]
  %s = reduce_sum %c {dims = [0]} : f32[]
  return z = %z, s = %s
})");
  CHECK(has(nested, Form::nested_predicate));
  CHECK_FALSE(has(nested, Form::moved_inside));  // nothing computes what is moved
  CHECK_FALSE(has(nested, Form::symbolic_dims));
  CHECK(has(nested, Form::concat_read_again));
  CHECK_FALSE(has(nested, Form::column_slice));
  const Forms columns = forms_of_text(R"(graph @g(%x: f32[8, 8], %w: f32[4, 16]) -> (z: f32[4, 16]) {
  %2 = slice %x {starts = [0, 0], limits = [4, 4], strides = [1, 1]} : f32[4, 4]
  %3 = matmul %2, %w : f32[4, 16]
  return z = %3
})");
  CHECK(has(columns, Form::column_slice));
  CHECK(has(columns, Form::strided_operand));
  const Forms rows = forms_of_text(R"(graph @g(%x: f32[8, 8], %w: f32[8, 16]) -> (z: f32[4, 16]) {
  %2 = slice %x {starts = [0, 0], limits = [4, 8], strides = [1, 1]} : f32[4, 8]
  %3 = matmul %2, %w : f32[4, 16]
  return z = %3
})");
  CHECK(has(rows, Form::view));
  CHECK_FALSE(has(rows, Form::column_slice));
}

TEST_CASE("forms of schedules, extents and runs are recognised", "[fuzz]") {
  const Forms softmax = forms_of_text(R"(#! options profile=h200 checked=0 runs=2 graph_mode=1
#! dims B=1
graph @g(%x: f32[B, 64]) -> (y: f32[B, 64]) where B in [1, 1] {
  %1 = reduce_max %x {dims = [1]} : f32[B]
  %2 = broadcast_in_dim %1 {dims = [0]} : f32[B, 64]
  %3 = sub %x, %2 : f32[B, 64]
  %4 = exp %3 : f32[B, 64]
  %5 = reduce_sum %4 {dims = [1]} : f32[B]
  %6 = broadcast_in_dim %5 {dims = [0]} : f32[B, 64]
  %7 = div %4, %6 : f32[B, 64]
  return y = %7
})");
  CHECK(has(softmax, Form::symbolic_dims));
  CHECK_FALSE(has(softmax, Form::halo_tiles));
  const Forms windows = forms_of_text(R"(graph @g(%x: f32[B, 64]) -> (y: f32[B, 61]) where B in [0, 99] {
  %1 = exp %x : f32[B, 64]
  %2 = slice %1 {starts = [0, 3], limits = [B, 64], strides = [1, 1]} : f32[B, 61]
  %3 = neg %2 : f32[B, 61]
  return y = %3
})");
  CHECK(has(windows, Form::moved_inside));
  CHECK(has(softmax, Form::minimal_extents));
  CHECK(has(softmax, Form::maximal_extents));
  CHECK(has(softmax, Form::held_in_registers));
  CHECK(has(softmax, Form::graph_mode));
  CHECK(has(softmax, Form::moved_buffers));
  CHECK_FALSE(has(softmax, Form::moved_packed_memory));
  CHECK_FALSE(has(softmax, Form::cluster));
}

TEST_CASE("every pattern can be made", "[fuzz]") {
  for (std::size_t i = 0; i < patterns().size(); ++i) {
    const Pattern& pattern = patterns()[i];
    int made = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      GrowingGraph g(seed, false, std::max<std::int64_t>(pattern.most_elements, 1024));
      try {
        pattern.make(g);
        made += g.evaluate();
      } catch (const Error&) {  // not legal so
      }
    }
    INFO("pattern " << i);
    CHECK(made >= 8);
  }
}

TEST_CASE("a form below its floor is named, once chance does not decide", "[fuzz]") {
  FormCounts counts;
  for (int i = 0; i < 20; ++i) counts.add(0, false);
  CHECK(counts.below_floor(true).empty());
  for (int i = 0; i < 4980; ++i) counts.add(~Forms{0} & ~bit(Form::cluster), i % 2 == 0);
  CHECK(counts.below_floor(false).empty());  // no cpu has clusters
  REQUIRE(counts.below_floor(true).size() == 1);
  CHECK(counts.below_floor(true)[0].starts_with("cluster: 0 of 5000 programs, the floor is "));
  CHECK(counts.table(true).find("| donated_output | 4980 | 2490 | 150 |") != std::string::npos);
  CHECK(counts.table(false).find("| scan | 4980 | 2490 | 50 |") != std::string::npos);
  CHECK(counts.table(false).find("| cluster | 0 | 0 | 0 |") != std::string::npos);
}

TEST_CASE("runs of one workspace with buffers elsewhere, together and saved, give the same",
          "[fuzz][emulated]") {
  const Case c = parse_case(R"(#! options profile=tiny3 checked=1 threads=2 runs=3
#! inputs_seed 5
graph @g(%x: f32[4, 4], param %w: f32[4, 4]) -> (y: f32[4, 4], z: f32[4, 4]) {
  %e = exp %w : f32[4, 4]
  %y = add %x, %e : f32[4, 4]
  %z = matmul %x, %e : f32[4, 4]
  return y = %y into %x, z = %z
})",
                            "test");
  const Device device = Device::emulated({.profile = "tiny3", .checked = true, .threads = 2});
  const Executable executable = runtime::make_executable(
      c.program.graph, run_pipeline(c.program.graph, target_profile("tiny3")), device, nullptr);
  const runtime::Values inputs = make_inputs(c.program, {});
  const std::vector<Results> runs = run_results(executable, c.options, inputs, {});
  REQUIRE(runs.size() == 3);
  const std::vector<Results> together = run_together(executable, executable, c.options, inputs, {});
  REQUIRE(together.size() == 6);
  const std::vector<Results> saved = run_results(through_file(executable), c.options, inputs, {});
  REQUIRE(saved.size() == 3);
  for (const std::vector<Results>* all : {&runs, &together, &saved}) {
    for (const Results& results : *all) {
      CHECK(results.at("y").data == runs[0].at("y").data);
      CHECK(results.at("z").data == runs[0].at("z").data);
    }
  }
}
