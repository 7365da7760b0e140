// What constants determine is computed at compile time, as the reference evaluator computes it.
// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_constants.hpp"

#include <cmath>

#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

ir::Graph fold(const ir::Graph& graph) { return ir::dead_code(ir::fold_constants(graph)); }

/// What the output of a body is after the pass: "constant {value = 3}" and its type, or the op that is left.
std::string folded_to(const std::string& body, const std::string& type, const std::string& where = "") {
  const ir::Graph graph = ir::parse(
      "graph @g(%x: f32[4], %i: i64[4]) -> (y: " + type + ") " + where + " { " + body + " }", "fold");
  const ir::Graph after = ir::fold_constants(graph);
  ir::verify(after);
  const ir::Op left = after[after.outputs[0].node].op;
  if (left != ir::Op::constant) return std::string(to_string(left));
  const std::string text = print(fold(graph));
  const std::size_t begin = text.rfind("constant");
  return text.substr(begin, text.find("\n", begin) - begin);
}

}  // namespace

TEST_CASE("fold_constants does what its header shows", "[passes]") {
  const ir::Graph before = parse_snippet(header_snippet("fold_constants", "Before"));
  const ir::Graph after = parse_snippet(header_snippet("fold_constants", "After"));
  CHECK(print(fold(before)) == print(after));
}

TEST_CASE("fold_constants folds element-wise ops, converts and moves", "[passes]") {
  CHECK(folded_to("%2 = constant {value = 3.0} : f32[4] %3 = neg %2 : f32[4] return y = %3", "f32[4]") ==
        "constant {value = -0x1.8p+1} : f32[4]");
  CHECK(folded_to("%2 = constant {value = 0.1} : f64[4] %3 = convert %2 : bf16[4] return y = %3",
                  "bf16[4]") == "constant {value = 0x1.9ap-4} : bf16[4]");
  CHECK(folded_to("%2 = constant {value = 127} : i8[4] %3 = add %2, %2 : i8[4] return y = %3", "i8[4]") ==
        "constant {value = -2} : i8[4]");
  CHECK(folded_to("%2 = constant {value = 1.0} : f32[4] %3 = sub %2, %2 : f32[4] %4 = div %3, %3 : f32[4] "
                  "return y = %4",
                  "f32[4]") == "constant {value = nan} : f32[4]");
  CHECK(folded_to("%2 = constant {value = 1} : i64[2] %3 = constant {value = 1} : i64[3] "
                  "%4 = concat %2, %3 {axis = 0} : i64[5] return y = %4",
                  "i64[5]") == "constant {value = 1} : i64[5]");
  CHECK(folded_to("%2 = constant {value = 1} : i64[2] %3 = constant {value = 2} : i64[3] "
                  "%4 = concat %2, %3 {axis = 0} : i64[5] return y = %4",
                  "i64[5]") == "concat");
  // A gather of equal elements does not ask for the index.
  CHECK(folded_to("%2 = constant {value = 2.0} : f32[9] %3 = gather %2, %i {axis = 0} : f32[4] return y = %3",
                  "f32[4]") == "constant {value = 0x1p+1} : f32[4]");
  CHECK(folded_to("%2 = constant {value = 2.0} : f32[4] %3 = add %2, %x : f32[4] return y = %3", "f32[4]") ==
        "add");
}

TEST_CASE("fold_constants folds a dim's size and a coordinate that is always 0", "[passes]") {
  CHECK(folded_to("%2 = dim_size {dim = 12} : i64[] return y = %2", "i64[]") ==
        "constant {value = 12} : i64[]");
  CHECK(folded_to("%2 = dim_size {dim = B} : i64[] return y = %2", "i64[]", "where B in [1, 8]") ==
        "dim_size");
  CHECK(folded_to("%2 = iota {axis = 1} : f32[3, 1] return y = %2", "f32[3, 1]") ==
        "constant {value = 0x0p+0} : f32[3, 1]");
  CHECK(folded_to("%2 = iota {axis = 0} : f32[3, 1] return y = %2", "f32[3, 1]") == "iota");
}

TEST_CASE("fold_constants folds a reduction only where every order gives the same bits", "[passes]") {
  const auto sum = [](const std::string& value, const std::string& extent,
                      const std::string& op = "reduce_sum", const std::string& dtype = "f32") {
    return folded_to("%2 = constant {value = " + value + "} : " + dtype + "[3, " + extent + "] %3 = " + op +
                         " %2 {dims = [1]} : " + dtype + "[3] return y = %3",
                     dtype + "[3]", "where B in [0, 8], N in [1, 8]");
  };
  CHECK(sum("3.0", "100") == "constant {value = 0x1.2cp+8} : f32[3]");
  CHECK(sum("3.0", "6000000") == "reduce_sum");      // 18,000,000 is beyond 2^24
  CHECK(sum("0x1.99999ap-4", "3") == "reduce_sum");  // 0.1f + 0.1f + 0.1f rounds
  CHECK(sum("-0.0", "7") == "constant {value = 0x0p+0} : f32[3]");
  CHECK(sum("0.0", "B") == "constant {value = 0x0p+0} : f32[3]");
  CHECK(sum("inf", "N") == "constant {value = inf} : f32[3]");
  CHECK(sum("inf", "B") == "reduce_sum");       // 0 where there is none
  CHECK(sum("0x1p+127", "2") == "reduce_sum");  // overflows
  CHECK(sum("7", "100", "reduce_sum", "i32") == "constant {value = 700} : i32[3]");
  CHECK(sum("100", "3", "reduce_sum", "i8") == "constant {value = 44} : i8[3]");
  CHECK(sum("3", "40", "reduce_prod", "i64") == "constant {value = -6289078614652622815} : i64[3]");
  CHECK(sum("3", "100000", "reduce_sum", "i64") == "constant {value = 300000} : i64[3]");
  CHECK(sum("-1", "100001", "reduce_prod", "i32") == "constant {value = -1} : i32[3]");
  CHECK(sum("3.0", "2", "reduce_prod") == "reduce_prod");
  CHECK(sum("-2.5", "N", "reduce_max") == "constant {value = -0x1.4p+1} : f32[3]");
  CHECK(sum("-2.5", "B", "reduce_max") == "reduce_max");  // -infinity where there is none
  CHECK(sum("-2.5", "0", "reduce_max") == "constant {value = -inf} : f32[3]");
  CHECK(sum("true", "B", "reduce_all", "bool") == "constant {value = true} : bool[3]");
  CHECK(sum("true", "B", "reduce_any", "bool") == "reduce_any");
}

TEST_CASE("fold_constants leaves random numbers and contractions", "[passes]") {
  CHECK(
      folded_to(
          "%2 = constant {value = 1} : i64[] %3 = random_uniform %2, %2 {stream = 0} : f32[4] return y = %3",
          "f32[4]") == "random_uniform");
  CHECK(folded_to("%2 = constant {value = 1.0} : f32[2, 2] %3 = matmul %2, %2 : f32[2, 2] return y = %3",
                  "f32[2, 2]") == "matmul");
}

TEST_CASE("fold_constants keeps the scope and line of what it folds", "[passes]") {
  const ir::Graph graph = ir::parse(R"(graph @g(%x: f32[4]) -> (y: f32[4]) {
    scope a at a.cpp:1 { %1 = constant {value = 2.0} : f32[] }
    scope b at b.cpp:2 { %2 = broadcast_in_dim %1 {dims = []} : f32[4] at b.cpp:3 }
    %3 = mul %x, %2 : f32[4]
    return y = %3
  })",
                                    "lines");
  const ir::Graph after = fold(graph);
  REQUIRE(after.nodes.size() == 3);
  CHECK(after.scope_path(after[1].scope) == "b");
  CHECK(after.location(after[1]).line == 3);
}

TEST_CASE("fold_constants keeps the meaning of random graphs", "[passes]") {
  check_pass_on_random_graphs(ir::fold_constants);
}

TEST_CASE("fold_constants of every element-wise op agrees with the evaluator on values of every type",
          "[passes]") {
  constexpr std::uint64_t seed = 4;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::size_t cases = 0;
  for (int op = 0; op < ir::op_count; ++op) {
    const ir::OpInfo& row = info(static_cast<ir::Op>(op));
    if (!row.elementwise) continue;
    for (const DType dtype : {f64, f32, i64, i32, i8, u8, boolean}) {
      if (!takes(row.operands, dtype)) continue;
      const std::vector<double> reals = {0.0, -0.0, 1, -2.5, 3e38, -INFINITY, NAN, 1e-40, 0.3};
      const std::vector<double> integers = {0, 1, -1, 7, -128, 127, 255, 2147483647};
      for (int n = 0; n < 6; ++n) {
        ir::Graph constants, inputs;
        runtime::Values values;
        ir::Node last{.op = row.op, .attr = ir::NoAttr{}, .operands = {}, .type = {dtype, {}}};
        if (row.result == ir::ResultClass::boolean) last.type.dtype = boolean;
        for (int i = 0; i < row.arity; ++i) {
          auto one = runtime::HostTensor::make(dtype, {});
          is_floating(dtype)
              ? one.set(0, reals[random() % reals.size()])
              : one.set_int(0, static_cast<std::int64_t>(integers[random() % integers.size()]));
          const std::string name = "v" + std::to_string(i);
          ir::ConstantAttr constant;
          is_floating(dtype) ? void(constant.real = one.get(0)) : void(constant.integer = one.get_int(0));
          constants.nodes.push_back(
              {.op = ir::Op::constant, .attr = constant, .operands = {}, .type = {dtype, {}}});
          inputs.nodes.push_back(
              {.op = ir::Op::input, .attr = ir::NameAttr{name}, .operands = {}, .type = {dtype, {}}});
          values.emplace(name, std::move(one));
          last.operands.push_back(static_cast<ir::NodeId>(i));
        }
        for (ir::Graph* graph : {&constants, &inputs}) {
          graph->nodes.push_back(last);
          graph->outputs = {{.name = "y", .node = static_cast<ir::NodeId>(row.arity)}};
        }
        const ir::Graph folded = fold(constants);
        REQUIRE(folded.nodes.size() == 1);
        const auto run = [&](const ir::Graph& graph) {
          return runtime::evaluate(graph, values, {}, runtime::Precision::same_type).outputs.at("y");
        };
        const auto got = run(folded), expected = run(inputs);
        INFO(row.name << ' ' << to_string(dtype) << ' ' << got.get(0) << ' ' << expected.get(0));
        const bool nan = got.is_real() && std::isnan(got.get(0)) && std::isnan(expected.get(0));
        CHECK((nan || got.to_host().data == expected.to_host().data));
        ++cases;
      }
    }
  }
  CHECK(cases > 500);
}
