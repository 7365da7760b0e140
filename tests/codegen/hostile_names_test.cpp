// Names that C++, the dialect or the lowering use themselves: the text compiles and computes what it should.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/hostile_names.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/access.hpp"
#include "codegen/codegen_support.hpp"
#include "codegen_cuda/text/identifiers.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Element-wise work, every usual nest, pairs, gather and concat over one input, all named by the caller.
void add_outputs(OpSweep& sweep, const Tensor& x) {
  sweep.expect_ulp("exp", exp(x), ir::Op::exp);
  sweep.expect_exact("rows", max(x, {1}));
  sweep.expect_exact("columns", min(x, {0}));
  sweep.expect_exact("argmax", argmax(x, 1));
  sweep.expect_exact(
      "moved", concat({transpose(x, {1, 0}), gather(transpose(x, {1, 0}), sweep.input(i32, {3}), 0)}, 0));
}

/// A graph of `inputs` called by the names: runs on the reference and the emulated device, compares the two.
void check_inputs(const std::vector<std::string>& names) {
  Graph g("names");
  std::map<std::string, HostTensor> values;
  Tensor total = g.input("first", f32, {6, 40});
  for (const std::string& name : names) total = maximum(total, g.input(name, f32, {6, 40}));
  g.output("total", total);
  g.output("rows", sum(total, {1}));
  g.output("columns", max(total, {0}));
  g.output("position", argmax(total, 1));
  const Executable executable = compile(g, Device::reference());
  Session session(compile(g, test_devices().back())), reference(executable);
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) continue;
    HostTensor tensor = HostTensor::make(f32, {6, 40});
    runtime::random_fill(tensor, 7, slot.name, -8, 8);
    for (std::int64_t i = 0; i < 240; ++i) tensor.set(i, std::floor(tensor.get(i)));  // sums are exact
    session.set(slot.name, tensor.data);
    reference.set(slot.name, tensor.data);
  }
  session.run();
  reference.run();
  for (const char* output : {"total", "rows", "columns", "position"}) {
    const bool same = session.get(output) == reference.get(output);
    INFO("output " << output);
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("inputs of any name, many in one kernel", "[codegen][device]") {
  const auto& names = hostile_names();
  for (std::size_t first = 0; first < names.size(); first += 30) {
    const std::size_t last = std::min(names.size(), first + 30);
    const std::vector<std::string> some(names.begin() + static_cast<std::ptrdiff_t>(first),
                                        names.begin() + static_cast<std::ptrdiff_t>(last));
    INFO("names from '" << some.front() << "' to '" << some.back() << "'");
    CHECK_NOTHROW(check_inputs(some));
  }
}

TEST_CASE("outputs and scopes of any name", "[codegen][device]") {
  OpSweep sweep("scopes");
  const Tensor x = sweep.input(f32, {4, 40});
  int count = 0;
  for (const std::string& name : hostile_names()) {
    const auto scope = sweep.graph().scope(name);
    const Tensor value = x * ++count;
    sweep.expect_exact("scope " + name, value);
    sweep.graph().output(name + " ", value);
    const auto inner = sweep.graph().scope(name + "\\");
    sweep.expect_exact("scope " + name, max(value, {1}));
  }
  sweep.run(test_device());
}

TEST_CASE("symbols of any name", "[codegen][device]") {
  // Some at a time: a shape has few dims.
  const auto& names = hostile_names();
  for (std::size_t first = 0; first + 1 < names.size(); first += 2) {
    OpSweep sweep("symbols");
    const Dim A = sweep.graph().dim(names[first], {.min = 1, .max = 50, .hint = 5});
    const Dim B = sweep.graph().dim(names[first + 1], {.min = 1, .max = 50, .hint = 40});
    add_outputs(sweep, sweep.input(f32, {5, 40}, {A, B}));
    INFO("dims '" << names[first] << "' and '" << names[first + 1] << "'");
    if (first % 14 == 0) {  // the whole compiler for some; the others as text
      CHECK_NOTHROW(sweep.run(test_device(), {{names[first], 5}, {names[first + 1], 40}}));
    } else {
      CHECK_NOTHROW(run_pipeline(ir_of(sweep.built()), target_profile("tiny3")));
    }
  }
}

TEST_CASE("symbols whose identifiers meet stay different", "[codegen][device]") {
  const std::vector<std::pair<std::string, std::string>> pairs = {{"float", "float_"}, {"float_", "float"},
                                                                  {"a b", "a_b"},      {"a_b", "a b"},
                                                                  {"load", "load_"},   {"a-b", "a.b"}};
  for (const auto& [one, other] : pairs) {
    OpSweep sweep("symbols");
    const Dim A = sweep.graph().dim(one, {.min = 1, .max = 50, .hint = 5});
    const Dim B = sweep.graph().dim(other, {.min = 1, .max = 50, .hint = 40});
    add_outputs(sweep, sweep.input(f32, {5, 40}, {A, B}));
    INFO("dims '" << one << "' and '" << other << "'");
    CHECK_NOTHROW(sweep.run(test_devices().back(), {{one, 5}, {other, 40}}));
  }
}

TEST_CASE("graphs of any name", "[codegen][device]") {
  for (const std::string& name :
       {std::string("float"), std::string("\xc3\xa9"), std::string("a b"), std::string("../../x"),
        std::string(500, 'g'), std::string("a\nb"), std::string("7")}) {
    OpSweep sweep(name);
    const Tensor x = sweep.input(f32, {2, 3});
    const auto scope = sweep.graph().scope(std::string(500, 's'));
    sweep.expect_exact("neg", -x);
    INFO("graph '" << name << "'");
    CHECK_NOTHROW(sweep.run(test_device()));
  }
}

TEST_CASE("identifiers: short, of one kind of letters, never a word of the text", "[codegen]") {
  for (const std::string& name : hostile_names()) {
    const std::string text = codegen::c_identifier(name);
    INFO("'" << name << "' becomes " << text);
    REQUIRE_FALSE(text.empty());
    CHECK((std::isalpha(static_cast<unsigned char>(text[0])) != 0));
    CHECK(std::all_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); }));
    CHECK(text.find("__") == std::string::npos);
  }
  CHECK(codegen::c_identifier("x") == "x");
  CHECK(codegen::c_identifier("a b") == "a_b");
  CHECK(codegen::c_identifier("B") == "B");
}

TEST_CASE("text of hostile names is the same every time", "[codegen]") {
  const auto text = [] {
    Graph g("names");
    Tensor total = g.input("first", f32, {4});
    for (const std::string& name : hostile_names()) total = total + g.input(name, f32, {4});
    g.output("y", total);
    return cuda_body(g);
  };
  CHECK(text() == text());
}
