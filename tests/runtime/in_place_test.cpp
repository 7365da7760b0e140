// Updates of a donor that others read: where they are in place, what is stored before them, what stands in
// the way. SPDX-License-Identifier: Apache-2.0
#include "schedule/views/in_place.hpp"

#include <algorithm>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "target/target.hpp"
#include "tensors/host_tensor.hpp"

using namespace fuse;  // NOLINT
using runtime::HostTensor;

namespace {

/// "kernel gemm copy ", and what became of the outputs with donors.
struct Planned {
  std::string steps, choices;
};

Planned planned(const std::string& text) {
  const Compiled compiled = run_pipeline(ir_of(Graph::parse(text)), target_profile("h200"));
  Planned result;
  for (const schedule::Step& step : compiled.plan.steps) {
    const bool kernel = std::holds_alternative<schedule::KernelStep>(step.work);
    const bool gemm = std::holds_alternative<schedule::GemmStep>(step.work);
    result.steps += kernel ? "kernel " : gemm ? "gemm " : "copy ";
  }
  result.choices = print(compiled.graph, compiled.partition.in_place);
  return result;
}

/// The outputs of two runs, the second with what the first one left in the donors. Every dim is 3 where it is
/// a symbol.
std::vector<std::vector<std::byte>> outputs_of_two_runs(const std::string& text, const Device& device) {
  const Graph g = Graph::parse(text);
  const Executable executable = compile(g, device);
  DimValues dims;
  for (const auto& symbol : ir_of(g).symbols) dims[symbol.name] = 3;
  Session session(executable, dims);
  std::vector<std::vector<std::byte>> outputs;
  for (int run = 0; run < 2; ++run) {
    double first = 1;
    for (const Slot& slot : executable.slots()) {
      const bool is_donor = std::any_of(
          executable.slots().begin(), executable.slots().end(),
          [&](const Slot& each) { return each.donor && executable.slots()[*each.donor].name == slot.name; });
      if (slot.kind == Slot::Kind::output || (run > 0 && is_donor)) continue;
      std::vector<std::int64_t> shape;
      for (const Dim& dim : slot.dims) shape.push_back(dim.is_constant() ? dim.constant() : 3);
      HostTensor tensor = HostTensor::make(slot.dtype, shape);
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
        if (slot.dtype == i32) {
          tensor.set_int(i, run + 1);
        } else {
          tensor.set(i, static_cast<double>((static_cast<std::int64_t>(first) + 7 * i) % 13) / 4);
        }
      }
      session.set(slot.name, tensor.data);
      first += 3;
    }
    session.run();
    for (const Slot& slot : executable.slots()) {
      if (slot.kind == Slot::Kind::output) outputs.push_back(session.get(slot.name));
    }
  }
  return outputs;
}

void check_everywhere(const std::string& text) {
  const auto exact = outputs_of_two_runs(text, Device::reference());
  for (const Device& device : test::test_devices()) {
    INFO(device.name());
    CHECK(outputs_of_two_runs(text, device) == exact);
  }
}

}  // namespace

TEST_CASE("in place: a GEMM and a reduction read the updated cache", "[runtime][device]") {
  const std::string text =
      R"(graph @c(%old: f32[4, 8, 4], %fresh: f32[4, T, 4], %pos: i32[], %q: f32[4, T, 4])
    -> (now: f32[4, 8, 4], s: f32[4, T, 8], total: f32[4, 8]) where T in [1, 8] hint 1 {
  %1 = constant {value = 0} : i32[]
  %2 = dynamic_update_slice %old, %fresh, %1, %pos, %1 : f32[4, 8, 4]
  %3 = matmul %q, %2 {transpose_b = true} : f32[4, T, 8]
  %4 = reduce_sum %2 {dims = [2]} : f32[4, 8]
  return now = %2 into %old, s = %3, total = %4
})";
  const Planned plan = planned(text);
  CHECK(plan.steps.find("copy") == std::string::npos);
  CHECK(plan.choices == "in place %5 in %old\n");
  check_everywhere(text);
}

TEST_CASE("in place: readers of the old contents come first, also where what they make is needed after",
          "[runtime][device]") {
  const std::string text = R"(graph @c(%old: f32[8, 4], %row: f32[1, 4], %pos: i32[])
    -> (now: f32[8, 4], s: f32[8], y: f32[8, 4]) {
  %1 = constant {value = 0} : i32[]
  %2 = dynamic_update_slice %old, %row, %pos, %1 : f32[8, 4]
  %3 = reduce_sum %old {dims = [1]} : f32[8]
  %4 = slice %old {starts = [0, 0], limits = [1, 4], strides = [1, 1]} : f32[1, 4]
  %5 = broadcast_in_dim %4 {dims = [0, 1]} : f32[8, 4]
  %6 = add %5, %2 : f32[8, 4]
  return now = %2 into %old, s = %3, y = %6
})";
  CHECK(planned(text).choices.find("in place ") == 0);
  check_everywhere(text);
}

TEST_CASE("in place: an update that is computed from what it overwrites", "[runtime][device][cuda-text]") {
  const std::string text = R"(graph @c(%old: f32[8, 4], %pos: i32[]) -> (now: f32[8, 4]) {
  %1 = constant {value = 0} : i32[]
  %2 = slice %old {starts = [1, 0], limits = [5, 4], strides = [1, 1]} : f32[4, 4]
  %3 = exp %2 : f32[4, 4]
  %4 = dynamic_update_slice %old, %3, %pos, %1 : f32[8, 4]
  return now = %4 into %old
})";
  const Planned plan = planned(text);
  CHECK(plan.steps == "kernel kernel ");
  check_everywhere(text);
}

TEST_CASE("in place: updates after each other in one memory, with readers between them",
          "[runtime][device]") {
  const std::string text =
      R"(graph @c(%old: f32[2, 8, 4], %a: f32[1, 1, 4], %b: f32[1, 1, 4], %pos: i32[], %q: f32[3, 4])
    -> (now: f32[2, 8, 4], s: f32[3, 8], t: f32[3, 8]) {
  %1 = constant {value = 0} : i32[]
  %2 = constant {value = 1} : i32[]
  %3 = dynamic_update_slice %old, %a, %1, %pos, %1 : f32[2, 8, 4]
  %4 = slice %3 {starts = [0, 0, 0], limits = [1, 8, 4], strides = [1, 1, 1]} : f32[1, 8, 4]
  %5 = reshape %4 : f32[8, 4]
  %6 = matmul %q, %5 {transpose_b = true} : f32[3, 8]
  %7 = dynamic_update_slice %3, %b, %2, %pos, %1 : f32[2, 8, 4]
  %8 = slice %7 {starts = [1, 0, 0], limits = [2, 8, 4], strides = [1, 1, 1]} : f32[1, 8, 4]
  %9 = reshape %8 : f32[8, 4]
  %10 = matmul %q, %9 {transpose_b = true} : f32[3, 8]
  return now = %7 into %old, s = %6, t = %10
})";
  const Planned plan = planned(text);
  CHECK(plan.steps.find("copy") == std::string::npos);
  CHECK(plan.choices.find("in place ") == 0);
  check_everywhere(text);
}

TEST_CASE("in place: the reader in the way is named, and the result is right all the same",
          "[runtime][device]") {
  struct Case {
    const char* name;
    std::string body, why;
  };
  const std::vector<Case> cases = {
      {"a reader of the old contents depends on the update",
       R"(%4 = reduce_sum %2 {dims = [1]} : f32[8]
  %5 = broadcast_in_dim %4 {dims = [0]} : f32[8, 4]
  %6 = mul %5, %old : f32[8, 4]
  return now = %2 into %old, y = %6)",
       "reads %old and depends on"},
      {"the old contents are an output", "return now = %2 into %old, y = %old", "output 'y' is %old"},
      {"no update", "%4 = reverse %old {dims = [0]} : f32[8, 4]\n  return now = %4 into %old, y = %2",
       "reads %old at other elements"},
  };
  for (const Case& item : cases) {
    INFO(item.name);
    const std::string text =
        R"(graph @c(%old: f32[8, 4], %row: f32[1, 4], %pos: i32[]) -> (now: f32[8, 4], y: f32[8, 4]) {
  %1 = constant {value = 0} : i32[]
  %2 = dynamic_update_slice %old, %row, %pos, %1 : f32[8, 4]
  )" + item.body +
        "\n}";
    const Planned plan = planned(text);
    INFO(plan.choices);
    CHECK(plan.choices.find("copy ") == 0);
    CHECK(plan.choices.find(item.why) != std::string::npos);
    check_everywhere(text);
  }
}

TEST_CASE("in place: one value is the output with a donor and another one", "[runtime][device]") {
  const std::string text =
      R"(graph @c(%old: f32[8, 4], %row: f32[1, 4], %pos: i32[]) -> (y: f32[8, 4], now: f32[8, 4]) {
  %1 = constant {value = 0} : i32[]
  %2 = dynamic_update_slice %old, %row, %pos, %1 : f32[8, 4]
  return y = %2, now = %2 into %old
})";
  CHECK(planned(text).steps == "kernel copy ");
  check_everywhere(text);
}

TEST_CASE("in place: a step of an optimiser reads each element and then writes it", "[runtime][device]") {
  const std::string text = R"(graph @adam(%p: f32[R, 7], %m: f32[R, 7], %v: f32[R, 7], %g: f32[R, 7])
    -> (p2: f32[R, 7], m2: f32[R, 7], v2: f32[R, 7]) where R in [1, 1000] hint 64 {
  %4 = constant {value = 0.5} : f32[]
  %5 = broadcast_in_dim %4 {dims = []} : f32[R, 7]
  %6 = mul %m, %5 : f32[R, 7]
  %7 = mul %g, %5 : f32[R, 7]
  %8 = add %6, %7 : f32[R, 7]
  %9 = mul %g, %g : f32[R, 7]
  %10 = mul %v, %5 : f32[R, 7]
  %11 = add %10, %9 : f32[R, 7]
  %14 = mul %8, %11 : f32[R, 7]
  %15 = sub %p, %14 : f32[R, 7]
  return p2 = %15 into %p, m2 = %8 into %m, v2 = %11 into %v
})";
  const Planned plan = planned(text);
  CHECK(plan.steps == "kernel ");
  CHECK(plan.choices.find("copy") == std::string::npos);
  // Neither pointer to a donor's memory promises that no other one is to it: three inputs and three outputs.
  const std::string texts = run_pipeline(ir_of(Graph::parse(text)), target_profile("h200")).source.text();
  const std::string_view signature = std::string_view(texts).substr(texts.rfind("FUSE_KERNEL("));
  std::size_t pointers = 0;
  for (std::size_t at = signature.find("ordered_global<"); at != signature.npos;
       at = signature.find("ordered_global<", at + 1))
    ++pointers;
  CHECK(pointers == 6);
  check_everywhere(text);
}

TEST_CASE("in place: a GEMM or a kernel writes an input that nothing reads after it",
          "[runtime][device][cuda-text]") {
  const std::string text = R"(graph @c(%h: f32[6, 4], %x: f32[6, 5], %w: f32[5, 4], %s: f32[6])
    -> (h2: f32[6, 4], s2: f32[6], y: f32[6, 4]) {
  %4 = matmul %x, %w : f32[6, 4]
  %5 = reduce_max %4 {dims = [1]} : f32[6]
  %6 = exp %h : f32[6, 4]
  return h2 = %4 into %h, s2 = %5 into %s, y = %6
})";
  const Planned plan = planned(text);
  CHECK(plan.steps.find("copy") == std::string::npos);
  CHECK(plan.choices.find("copy") == std::string::npos);
  check_everywhere(text);
}

TEST_CASE("in place: what reads other elements of a donor, or several times, is made aside",
          "[runtime][device][cuda-text]") {
  struct Case {
    std::string body, why;
  };
  const std::vector<Case> cases = {
      {"%3 = reverse %old {dims = [0]} : f32[8, 4]\n  %4 = add %old, %3 : f32[8, 4]",
       "reads %old at other elements"},
      {"%3 = transpose %old {dims = [1, 0]} : f32[4, 8]\n  %5 = reshape %3 : f32[8, 4]\n  %4 = exp %5 : "
       "f32[8, 4]",
       "reads %old at other elements"},
      {"%3 = reduce_max %old {dims = [1]} : f32[8]\n  %5 = broadcast_in_dim %3 {dims = [0]} : f32[8, 4]\n"
       "  %4 = sub %old, %5 : f32[8, 4]",
       "%old"},
      {"%4 = cumulative_sum %old {axis = 0, exclusive = false} : f32[8, 4]", "in several threads"},
      {"%3 = reshape %old : f32[4, 8]\n  %5 = matmul %old, %3 : f32[8, 8]\n"
       "  %4 = slice %5 {starts = [0, 0], limits = [8, 4], strides = [1, 1]} : f32[8, 4]",
       ""},
  };
  for (const Case& item : cases) {
    const std::string text = "graph @c(%old: f32[8, 4]) -> (now: f32[8, 4]) {\n  " + item.body +
                             "\n  return now = %4 into %old\n}";
    const Planned plan = planned(text);
    INFO(text << plan.choices);
    CHECK(plan.choices.find(item.why.empty() ? "in place " : "copy ") == 0);
    CHECK(plan.choices.find(item.why) != std::string::npos);
    check_everywhere(text);
  }
}

TEST_CASE("in place: two values that are computed from each other's donors", "[runtime][device][cuda-text]") {
  for (const bool apart : {false, true}) {
    const std::string text =
        std::string(R"(graph @c(%a: f32[8, 4], %b: f32[8, 4]) -> (a2: f32[8, 4], b2: f32[8, 4]) {
)") +
        (apart
             ? "  %2 = reverse %b {dims = [0]} : f32[8, 4]\n  %3 = transpose %a {dims = [1, 0]} : f32[4, 8]\n"
               "  %4 = reshape %3 : f32[8, 4]\n"
             : "  %2 = exp %b : f32[8, 4]\n  %4 = add %a, %b : f32[8, 4]\n") +
        "  return a2 = %2 into %a, b2 = %4 into %b\n}";
    const Planned plan = planned(text);
    INFO(plan.steps << plan.choices);
    CHECK(plan.choices.find("in place") != std::string::npos);
    check_everywhere(text);
  }
}

TEST_CASE("in place: several outputs of one kernel wait for all readers of what they overwrite",
          "[runtime][device]") {
  const std::string text = R"(graph @s(%m: f32[8, 16], %p: f32[8, 16], %g: f32[8, 16])
    -> (m1: f32[8, 16], p1: f32[8, 16], norm: f32[8], sums: f32[16]) {
  %1 = sub %m, %g : f32[8, 16]
  %2 = sub %p, %g : f32[8, 16]
  %3 = mul %m, %m : f32[8, 16]
  %4 = reduce_sum %3 {dims = [1]} : f32[8]
  %5 = reduce_sum %p {dims = [0]} : f32[16]
  return m1 = %1 into %m, p1 = %2 into %p, norm = %4, sums = %5
})";
  CHECK(planned(text).choices.find("copy") == std::string::npos);
  check_everywhere(text);
}

TEST_CASE("in place: each pair of crossed updates keeps one, and nothing else is made aside",
          "[runtime][device]") {
  std::string head = "graph @n(", body, out;
  for (int i = 0; i < 3; ++i) {
    const std::string a = "%a" + std::to_string(i), b = "%b" + std::to_string(i);
    const std::string x = "%x" + std::to_string(i), y = "%y" + std::to_string(i);
    head += (i ? ", " : "") + a + ": f32[4, 4], " + b + ": f32[4, 4]";
    body += "  " + x + " = cumulative_sum " + b + " {axis = 0, exclusive = false} : f32[4, 4]\n  " + y +
            " = cumulative_sum " + a + " {axis = 1, exclusive = false} : f32[4, 4]\n";
    out += (i ? ", " : "") + std::string("x") + std::to_string(i) + " = " + x + " into " + a + ", y" +
           std::to_string(i) + " = " + y + " into " + b;
  }
  std::string results;
  for (int i = 0; i < 3; ++i)
    results += "x" + std::to_string(i) + ": f32[4, 4], y" + std::to_string(i) + ": f32[4, 4], ";
  const std::string text = head + ", %c: f32[4, 4]) -> (" + results + "z: f32[4, 4]) {\n" + body +
                           "  %z = add %x0, %y2 : f32[4, 4]\n  return " + out + ", z = %z into %c\n}";
  const std::string choices = planned(text).choices;
  INFO(choices);
  std::size_t copies = 0;
  for (std::size_t at = choices.find("copy "); at != choices.npos; at = choices.find("copy ", at + 1))
    ++copies;
  CHECK(copies == 3);
  CHECK(choices.find("into %c") == std::string::npos);
  check_everywhere(text);
}
