// simplify: rules meet, new nodes are simplified too, and special values stay. Each rule alone:
// rules_test.cpp. SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/simplify.hpp"

#include "base/access.hpp"
#include "ir/builder/builder.hpp"
#include "passes/common_subexpressions.hpp"
#include "passes/dead_code.hpp"
#include "passes/fold_constants.hpp"
#include "passes/pass_support.hpp"
#include "passes/rule_instances.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// As the pipeline runs it.
ir::Graph simplified(const ir::Graph& graph, bool relaxed = false) {
  const ir::Graph prepared = ir::common_subexpressions(ir::fold_constants(graph));
  ir::Graph after =
      ir::dead_code(ir::common_subexpressions(ir::simplify(prepared, {.relaxed_rounding = relaxed})));
  ir::verify(after);
  return after;
}

/// The ops that are left, in graph order, but for constants: "mul exp".
std::string ops_of(const Tensor& y, const Graph& g, bool relaxed = false) {
  ir::Graph graph = ir_of(g);
  graph.outputs.push_back({.name = "y", .node = detail::Builder::node(y)});
  std::string text;
  for (const ir::Node& node : simplified(ir::dead_code(graph), relaxed).nodes) {
    if (info(node.op).has(ir::Trait::source)) continue;
    text += (text.empty() ? "" : " ") + std::string(to_string(node.op));
  }
  return text;
}

}  // namespace

TEST_CASE("simplify does what its header shows", "[passes]") {
  const ir::Graph before = parse_snippet(header_snippet("simplify", "Before"));
  const ir::Graph after = parse_snippet(header_snippet("simplify", "After"));
  CHECK(print(ir::dead_code(ir::simplify(before))) == print(after));
}

TEST_CASE("simplify applies rules to what rules make", "[passes]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {4}), y = g.input("y", f32, {4}), i = g.input("i", i32, {4});
  CHECK(ops_of(-(-(x * 1.0)) + -(-y), g) == "add");
  CHECK(ops_of(x / 4.0 * 4.0, g) == "mul mul");
  CHECK(ops_of(pow(pow(x, 1.0), 2.0), g) == "mul");
  CHECK(ops_of(((i + 1) + 2) + 3, g) == "add");
  CHECK(ops_of(((i + 1) - i) * 2 + i - i, g).empty());  // the constant 2
  CHECK(ops_of(select(!!(x < y), -x, -x), g) == "neg");
  CHECK(ops_of(!(x == y), g) == "ne");
  CHECK(ops_of(!(x != y), g) == "eq");
  CHECK(ops_of(convert(convert(convert(x, f64), f64), f32) * 2.0, g) == "mul");
  CHECK(ops_of(convert(convert(x, bf16), f32), g) == "convert convert");
}

TEST_CASE("a slice of a broadcast is one of less, where it cuts nothing of what is repeated", "[passes]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {3, 1}), y = broadcast_in_dim(x, {3, 5, 4}, {0, 2});
  CHECK(ops_of(slice(y, 1, 1, 3), g) == "broadcast_in_dim");
  CHECK(ops_of(slice(y, 2, 1, 3), g) == "broadcast_in_dim");  // of the one element that is there
  CHECK(ops_of(slice(slice(y, 1, 0, 5, 2), 2, 1, 4, 2), g) == "broadcast_in_dim");
  CHECK(ops_of(slice(y, 0, 1, 3), g) == "broadcast_in_dim slice");
  CHECK(ops_of(slice(y, 0, 0, 2), g) == "broadcast_in_dim slice");
  CHECK(ops_of(slice(y, 0, 0, 3, 2), g) == "broadcast_in_dim slice");
  CHECK(ops_of(slice(slice(y, 1, 1, 3), 0, 1, 3), g) == "broadcast_in_dim slice");
}

TEST_CASE("simplify keeps -0, infinities and NaN", "[passes]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {4});
  CHECK(ops_of(x + 0.0, g) == "add");   // -0 + 0 is 0
  CHECK(ops_of(x - -0.0, g) == "sub");  // so is -0 - -0
  CHECK(ops_of(x + -0.0, g).empty());
  CHECK(ops_of(x - 0.0, g).empty());
  CHECK(ops_of(0.0 - x, g) == "sub");  // 0 - 0 is 0, not -0
  CHECK(ops_of(-0.0 - x, g) == "neg");
  CHECK(ops_of(x * 0.0, g) == "mul");  // NaN for infinite x
  CHECK(ops_of(x - x, g) == "sub");
  CHECK(ops_of(x / x, g) == "div");
  CHECK(ops_of(x == x, g) == "eq");
  CHECK(ops_of(!(x < 1.0), g) == "lt logical_not");
  CHECK(ops_of(x / 3.0, g) == "div");
  CHECK(ops_of(x / 0x1p-149, g) == "div");                  // 2^149 is no f32
  CHECK(ops_of(pow(x, 0.5), g) == "pow");                   // pow(-0, 0.5) is 0, sqrt(-0) is -0
  CHECK(ops_of(sum(reshape(x, {4, 1}), {1}), g) == "add");  // 0 + -0 is 0
  CHECK(ops_of(max(reshape(x, {4, 1}), {1}), g).empty());
}

TEST_CASE("simplify changes roundings only where it may", "[passes]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {4, 8}), y = g.input("y", f32, {4, 8}), z = g.input("z", f32, {4, 8});
  const auto check = [&](const Tensor& value, const std::string& strict, const std::string& relaxed) {
    CHECK(ops_of(value, g) == strict);
    CHECK(ops_of(value, g, true) == relaxed);
  };
  check(x / 3.0, "div", "mul");
  check((x + 0.1) + 0.2, "add add", "add");
  check(x * y + x * z, "mul mul add", "add mul");
  check(exp(x) * exp(y), "exp exp mul", "add exp");
  check(reciprocal(sqrt(x)), "sqrt reciprocal", "rsqrt");
  check(convert(convert(x, bf16), f32), "convert convert", "");
  check(convert(convert(x, bf16), i32), "convert convert", "convert convert");
  check(sum(sum(x, {1}), {0}), "reduce_sum reduce_sum", "reduce_sum");
  check(sum(x * 0.1, {1}), "mul reduce_sum", "reduce_sum mul");
  // What another op needs as well is not computed twice.
  const Tensor product = x * y, both = (product + x * z) * product;
  check(both, "mul mul add mul", "mul mul add mul");
}

namespace {

/// Neighbours of what each type holds at most, values between two of a narrower type, and special ones.
runtime::HostTensor converted_values(DType dtype) {
  std::vector<double> reals = {0.0,
                               -0.0,
                               0.5,
                               -0.5,
                               1.5,
                               1e-40,
                               1e-300,
                               65520.0,
                               3.5e38,
                               1e300,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
  std::vector<std::int64_t> integers = {0};
  for (int power = 0; power < 63; ++power) {
    for (const std::int64_t by : {-1, 0, 1}) {
      for (const std::int64_t sign : {-1, 1}) integers.push_back(sign * (std::int64_t{1} << power) + by);
    }
  }
  for (const int bits : {8, 11, 24, 53}) {  // one below a number of so many bits, and one above a tie of them
    for (const int more : {3, 13, 22, 29, 45}) {
      reals.push_back(2 - std::ldexp(1.0, -bits));
      reals.push_back(1 + std::ldexp(1.0, -bits) + std::ldexp(1.0, -bits - more));
      if (bits + more < 62)
        integers.push_back((std::int64_t{1} << (bits + more)) + (std::int64_t{1} << more) + 1);
    }
  }
  for (const std::int64_t integer : integers) reals.push_back(static_cast<double>(integer));
  const bool real = is_floating(dtype);
  auto tensor =
      runtime::HostTensor::make(dtype, {static_cast<std::int64_t>(real ? reals.size() : integers.size())});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (real) {
      tensor.set(i, reals[at]);
    } else {
      const std::int64_t v = integers[at];  // wraps
      tensor.set_int(i, dtype == boolean ? v & 1
                        : dtype == u8    ? v & 255
                        : dtype == i8    ? static_cast<std::int8_t>(v)
                        : dtype == i32   ? static_cast<std::int32_t>(v)
                                         : v);
    }
  }
  return tensor;
}

}  // namespace

TEST_CASE("of two converts one is left just where no value tells the difference", "[passes]") {
  const std::vector<DType> all = {f64, f32, f16, bf16, i64, i32, i8, u8, boolean};
  for (const DType from : all) {
    const runtime::HostTensor values = converted_values(from);
    for (const DType middle : all) {
      for (const DType to : all) {
        if (from == middle || middle == to) continue;
        INFO(to_string(from) << ", " << to_string(middle) << ", " << to_string(to));
        const auto result = [&](bool both) {
          Graph g("converts");
          const Tensor x = g.input("x", from, {values.element_count()});
          g.output("y", convert(both ? convert(x, middle) : x, to));
          return runtime::evaluate(ir_of(g), {{"x", values}}, {}, runtime::Precision::same_type)
              .outputs.at("y");
        };
        Graph g("converts");
        const bool fewer =
            ops_of(convert(convert(g.input("x", from, {4}), middle), to), g) != "convert convert";
        const bool same = same_bits(result(true), result(false));
        // Rules compare types, and so do not see that of small numbers alone, or of 0, less counts.
        const bool small =
            to == boolean || (to == f16 && is_integer(from)) || (from == bf16 && middle == f16);
        CHECK((fewer == same || (same && small)));
      }
    }
  }
}

TEST_CASE("simplify composes movement of symbolic dims", "[passes]") {
  Graph g("g");
  const Dim B = g.dim("B", {.min = 8, .max = 100}), T = g.dim("T", {.min = 4, .max = 64});
  const Tensor x = g.input("x", f32, {B, T});
  CHECK(ops_of(transpose(transpose(x, {1, 0}), {1, 0}), g).empty());
  CHECK(ops_of(reshape(reshape(x, {B * T}), {T, B}), g) == "reshape");
  CHECK(ops_of(reshape(reshape(x, {B * T}), {B, T}), g).empty());
  CHECK(ops_of(slice(slice(x, 0, 2, B), 0, 1, 4), g) == "slice");
  CHECK(ops_of(slice(x, 0, 0, B), g).empty());
  CHECK(ops_of(broadcast_in_dim(reshape(sum(x, {1}), {B, 1}), {B, T}, {0, 1}), g) ==
        "reduce_sum broadcast_in_dim");
  CHECK(ops_of(sum(transpose(x, {1, 0}), {0}), g) == "reduce_sum");
  CHECK(ops_of(reverse(reverse(x, {0}), {0, 1}), g) == "reverse");
}

TEST_CASE("simplify keeps provenance, random streams, and what an output's memory means", "[passes]") {
  const ir::Graph graph = ir::parse(R"(graph @g(%x: f32[4], %s: i64[]) -> (y: f32[4], z: f32[4]) {
    scope a {
      %2 = constant {value = 2.0} : f32[4]
      %3 = pow %x, %2 : f32[4] at a.cpp:3
    }
    %4 = constant {value = 1.0} : f32[4]
    %5 = mul %3, %4 : f32[4]
    %6 = random_uniform %s, %s {stream = 5} : f32[4]
    %7 = div %6, %4 : f32[4]
    return y = %5 into %x, z = %7
  })",
                                    "provenance");
  const ir::Graph after = simplified(graph);
  REQUIRE(after.nodes.size() == 4);
  CHECK(after[2].op == ir::Op::mul);
  CHECK(after.scope_path(after[2].scope) == "a");
  CHECK(after.location(after[2]).line == 3);
  CHECK(ir::attr<ir::RandomAttr>(after[3]).stream == 5);
  CHECK(after.outputs[0].donor == 0);
  CHECK(signature_of(after) == signature_of(graph));
}

TEST_CASE("simplify keeps the meaning of random graphs", "[passes]") {
  check_pass_on_random_graphs([](const ir::Graph& graph) { return ir::dead_code(ir::simplify(graph)); });
  std::size_t before = 0, after = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const ir::Graph graph = ir::dead_code(random_graph(seed, 100));
    before += graph.nodes.size();
    after += simplified(graph).nodes.size();
  }
  CHECK(after < before);  // else the graphs test nothing
}

TEST_CASE("simplify takes away what rules say is nothing, wherever it stands in a random graph", "[passes]") {
  std::vector<const ir::algebra::Rule*> nothing;  // rules that make x of something
  for (const ir::algebra::Rule& rule : ir::algebra::rules()) {
    const bool is_x = rule.to.kind == Pattern::Kind::value && rule.to.slot == 0;
    if (is_x && rule.keeps == ir::algebra::Keeps::bits) nothing.push_back(&rule);
  }
  std::size_t wrapped = 0, plain_ops = 0, left = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const ir::Graph plain = ir::dead_code(random_graph(seed, 60));
    ir::Graph noisy = plain;
    noisy.nodes.clear();
    std::vector<ir::NodeId> to;
    for (ir::Node node : plain.nodes) {
      for (ir::NodeId& operand : node.operands) operand = to[operand];
      noisy.nodes.push_back(std::move(node));
      to.push_back(static_cast<ir::NodeId>(noisy.nodes.size() - 1));
      const std::size_t before = noisy.nodes.size();
      for (int i = 0; i < 3; ++i) {
        const ir::algebra::Rule& rule = *nothing[random() % nothing.size()];
        const auto made = RuleInstance(random(), false).wrap(noisy, to.back(), rule.from);
        if (!made) continue;
        const std::vector<std::uint32_t> uses(noisy.nodes.size());
        const auto match = ir::algebra::match(rule.from, noisy, uses, noisy[*made]);
        if (match && (!rule.where.holds || rule.where.holds(*match))) to.back() = *made;
      }
      wrapped += noisy.nodes.size() - before;
    }
    ir::renumber_outputs(noisy, to);
    ir::verify(noisy);
    const ir::Graph after = simplified(noisy);
    const bool same = outputs_of(after, seed) == outputs_of(noisy, seed);
    CHECK(same);
    plain_ops += simplified(plain).nodes.size();
    left += after.nodes.size();
  }
  CHECK(wrapped > 1000);
  CHECK(left == plain_ops);
}

TEST_CASE("simplify of 100,000 ops in a chain, and of 10,000 users of one value", "[passes]") {
  Graph g("deep");
  const Tensor x = g.input("x", f32, {4});
  Tensor deep = x;
  for (int i = 0; i < fewer(50'000); ++i) deep = -(deep * 1.0);
  g.output("deep", deep);
  Tensor wide = x;
  for (int i = 0; i < fewer(10'000); ++i) wide = maximum(wide, abs(-x));
  g.output("wide", wide);
  const ir::Graph after = simplified(ir_of(g));
  CHECK(after.outputs[0].node == 0);
  CHECK(after.nodes.size() == 3);  // x, abs, one max
}
