// Equal segments are found, and nothing that a kernel depends on is overlooked.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/canonical.hpp"

#include <functional>
#include <set>

#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::CanonicalSegment;
using schedule::EqualSegments;

namespace {

/// How many forms the kernel segments of a graph have.
struct Forms {
  ir::Graph graph;
  schedule::Partition partition;
  EqualSegments equal;

  explicit Forms(const Graph& from)
      : graph(prepared(from)),
        partition(schedule::partition(graph, {.stitch = false})),
        equal(equal_segments(graph, partition.segments, partition.storage)) {}
  std::size_t segments() const { return partition.segments.size(); }
  std::size_t count() const { return equal.first.size(); }
  bool same(std::size_t a, std::size_t b) const {
    const bool answer = equal.form_of[a] == equal.form_of[b];
    // Equality decides, whatever the hashes are.
    CHECK(schedule::equal(graph, equal.forms[a], equal.forms[b]) == answer);
    if (answer) CHECK(equal.forms[a].hash == equal.forms[b].hash);
    return answer;
  }
};

using Branch = std::function<Tensor(Graph&, const std::string& suffix)>;

/// Two branches of one graph, each with inputs of its own and one output: a segment each.
Forms two(const Branch& first, const Branch& second) {
  Graph g("two");
  for (const char* name : {"B", "C"}) g.dim(name, {.min = 1, .max = 100});
  {
    const auto scope = g.scope("first");
    g.output("y0", first(g, "0"));
  }
  g.output("y1", second(g, "1"));
  return Forms(g);
}

Dim symbol(const char* name, std::int64_t max = 100) { return Dim::symbol(name, {.min = 1, .max = max}); }

/// (x - y) * c + x over dims [B, 64]
Tensor plain(Graph& g, const std::string& suffix) {
  const Tensor x = g.input("x" + suffix, f32, {symbol("B"), 64}),
               y = g.input("y" + suffix, f32, {symbol("B"), 64});
  return (x - y) * 0.5 + x;
}

}  // namespace

TEST_CASE("equal segments have one form, whatever their names, scopes, lines and ids",
          "[schedule][canonical]") {
  const Forms forms = two(plain, [](Graph& g, const std::string& suffix) {
    const auto scope = g.scope("elsewhere");
    const Tensor unused = g.input("unused", f32, {7});
    // The inputs are declared the other way round: their ids are, too.
    const Tensor y = g.input("other y" + suffix, f32, {symbol("B"), 64});
    const Tensor x = g.parameter("other x" + suffix, f32, {symbol("B"), 64});
    return (x - y) * 0.5 + x;
  });
  REQUIRE(forms.segments() == 2);
  CHECK(forms.same(0, 1));
  CHECK(forms.count() == 1);
  CHECK(forms.equal.first[0] == 0);
  // What is x in one is x in the other.
  const CanonicalSegment &a = forms.equal.forms[0], &b = forms.equal.forms[1];
  REQUIRE(a.inputs.size() == 2);
  CHECK(forms.graph.value_name(a.inputs[0]) == "%x0");
  CHECK(forms.graph.value_name(b.inputs[0]) == "%other x1");
  CHECK(counterpart(a, b, a.inputs[1]) == b.inputs[1]);
  CHECK(counterpart(a, b, forms.partition.segments[0].root) == forms.partition.segments[1].root);
}

TEST_CASE("whatever a kernel depends on tells segments apart", "[schedule][canonical]") {
  const auto input = [](Graph& g, const std::string& name, const std::string& suffix, DType dtype = f32,
                        std::vector<Dim> dims = {symbol("B"), 64}) {
    return g.input(name + suffix, dtype, std::move(dims));
  };
  const auto with = [&](const std::function<Tensor(const Tensor&, const Tensor&)>& f, DType dtype = f32,
                        std::vector<Dim> dims = {symbol("B"), 64}) -> Branch {
    return [=](Graph& g, const std::string& suffix) {
      const Tensor x = input(g, "x", suffix, dtype, dims);
      return f(x, input(g, "y", suffix, dtype, dims));
    };
  };
  const auto base = [](const Tensor& x, const Tensor& y) { return (x - y) * 0.5 + x; };
  struct Case {
    const char* what;
    Branch a, b;
  };
  const auto sum_over = [&](std::int64_t axis) {
    return with([=](const Tensor& x, const Tensor& y) { return sum(x + y, {axis}); }, f32, {64, 64});
  };
  const auto part = [&](std::int64_t from) {
    return with(
        [=](const Tensor& x, const Tensor& y) { return slice(x, 1, from, from + 8) + slice(y, 1, 0, 8); });
  };
  const auto turned = [&](std::vector<std::int64_t> to) {
    return with([=](const Tensor& x, const Tensor& y) { return transpose(x + y, to); }, f32, {8, 8, 8});
  };
  const Case cases[] = {
      {"op", with(base), with([](auto& x, auto& y) { return (x + y) * 0.5 + x; })},
      {"constant", with(base), with([](auto& x, auto& y) { return (x - y) * 0.25 + x; })},
      {"sign of a zero", with([](auto& x, auto& y) { return (x - y) * 0.0 + x; }),
       with([](auto& x, auto& y) { return (x - y) * -0.0 + x; })},
      {"dtype", with(base), with(base, f64)},
      {"extent", with(base), with(base, f32, {symbol("B"), 65})},
      {"rank", with(base, f32, {64, 64}), with(base, f32, {4096})},
      {"symbol", with(base), with(base, f32, {symbol("C"), 64})},
      {"symbolic or not", with(base), with(base, f32, {100, 64})},
      {"order of dims", with(base, f32, {32, 64}), with(base, f32, {64, 32})},
      {"operand order", with(base), with([](auto& x, auto& y) { return (y - x) * 0.5 + x; })},
      {"one input or two", with(base), with([](auto& x, auto&) { return (x - x) * 0.5 + x; })},
      {"which input", with(base), with([](auto& x, auto& y) { return (x - y) * 0.5 + y; })},
      {"reduced dim", sum_over(0), sum_over(1)},
      {"extent of an input alone", with([](auto& x, auto&) { return sum(x, {1}); }, f32, {64, 64}),
       with([](auto& x, auto&) { return sum(x, {1}); }, f32, {64, 32})},
      {"where a slice starts", part(0), part(8)},
      {"permutation", turned({0, 2, 1}), turned({2, 1, 0})},
      {"one op more", with(base), with([](auto& x, auto& y) { return exp((x - y) * 0.5 + x); })},
      {"result only", with([](auto& x, auto& y) { return convert(x + y, f64); }),
       with([](auto& x, auto& y) { return convert(x + y, f16); })},
  };
  for (const Case& one : cases) {
    INFO(one.what);
    const Forms differ = two(one.a, one.b);
    REQUIRE(differ.segments() == 2);
    CHECK_FALSE(differ.same(0, 1));
    // The test is of the difference alone: each is equal to itself.
    for (const Branch& branch : {one.a, one.b}) {
      const Forms equal = two(branch, branch);
      REQUIRE(equal.segments() == 2);
      CHECK(equal.same(0, 1));
    }
  }
}

TEST_CASE("forms that differ in where slices of stored values begin are of one family",
          "[schedule][canonical]") {
  const auto part = [](std::int64_t from, std::int64_t extent = 8, std::int64_t axis = 1) -> Branch {
    return [=](Graph& g, const std::string& suffix) {
      return exp(slice(g.input("x" + suffix, f32, {64, 64}), axis, from, from + extent));
    };
  };
  const auto one_family = [](const Branch& a, const Branch& b) {
    const Forms forms = two(a, b);
    REQUIRE(forms.segments() == 2);
    const bool answer = schedule::of_one_family(forms.graph, forms.equal.forms[0], forms.equal.forms[1]);
    CHECK((forms.equal.family_of.back() == 0) == answer);
    return answer;
  };
  CHECK(one_family(part(0), part(0)));
  CHECK(one_family(part(0), part(8)));
  CHECK(one_family(part(0, 8, 0), part(5, 8, 0)));
  CHECK_FALSE(one_family(part(0), part(4)));  // aligned otherwise
  CHECK_FALSE(one_family(part(0), part(8, 16)));
  CHECK_FALSE(one_family(part(0), part(8, 8, 0)));
  const auto computed = [](std::int64_t from) -> Branch {
    return [=](Graph& g, const std::string& suffix) {
      return slice(reverse(g.input("x" + suffix, f32, {64, 64}), {1}), 1, from, from + 8);
    };
  };
  CHECK(one_family(computed(8), computed(8)));
  CHECK_FALSE(one_family(computed(8), computed(16)));
}

TEST_CASE("draws of different streams have kernels of their own", "[schedule][canonical]") {
  Graph g("draws");
  const Tensor seed = g.input("seed", i64, {}), offset = g.input("offset", i64, {});
  for (const char* name : {"a", "b"}) g.output(name, random_uniform(f32, {64}, seed, offset));
  const Forms forms(g);
  REQUIRE(forms.segments() == 2);
  CHECK_FALSE(forms.same(0, 1));
}

TEST_CASE("buffers that are one, what is stored, and updates in place tell segments apart",
          "[schedule][canonical]") {
  Forms forms = two(plain, plain);
  REQUIRE(forms.same(0, 1));
  const std::vector<ir::NodeId> inputs = forms.partition.segments[1].inputs;
  {
    schedule::Partition aliased = forms.partition;
    aliased.storage[inputs[1]] = inputs[0];
    CHECK(equal_segments(forms.graph, aliased.segments, aliased.storage).first.size() == 2);
  }
  {
    schedule::Partition stores = forms.partition;
    schedule::Segment& segment = stores.segments[1];
    segment.results.insert(segment.results.begin(), segment.nodes[segment.nodes.size() - 2]);
    CHECK(equal_segments(forms.graph, stores.segments, stores.storage).first.size() == 2);
  }
  Graph g("caches");
  for (const char* name : {"0", "1"}) {
    const Tensor old = g.input(std::string("old") + name, f32, {6, 4}),
                 at = g.input(std::string("at") + name, i64, {});
    const Tensor row = g.input(std::string("row") + name, f32, {1, 4});
    g.output(std::string("new") + name, dynamic_update_slice(old, row * 2, {at, 0}), old);
  }
  Forms updates(g);
  REQUIRE(updates.segments() == 2);
  REQUIRE(updates.partition.segments[0].in_place());
  CHECK(updates.same(0, 1));
  for (const std::size_t unread : {0, 1}) {
    for (const CanonicalSegment::Operand& operand : updates.equal.forms[unread].operands) {
      CHECK((operand.source != CanonicalSegment::Source::unread || operand.index == 0));
    }
    CHECK(updates.equal.forms[unread].inputs.size() == 2);  // the row and where it goes, not the old contents
  }
  updates.partition.segments[1].phases[0].in_place = false;
  CHECK(equal_segments(updates.graph, updates.partition.segments, updates.partition.storage).first.size() ==
        2);
}

TEST_CASE("a form is found among thousands that differ in one number", "[schedule][canonical]") {
  Graph g("many");
  const Tensor x = g.input("x", f32, {64});
  for (int i = 0; i < 4000; ++i) {
    g.output("y" + std::to_string(i), exp(x * (1.0 + i % 2000)));
  }
  const Forms forms(g);
  // Every second one is an equal op of an equal operand: they are one value, and the second output a copy.
  CHECK(forms.segments() == 2000);
  CHECK(forms.count() == 2000);
  std::set<std::uint64_t> hashes;
  for (const CanonicalSegment& form : forms.equal.forms) hashes.insert(form.hash);
  CHECK(hashes.size() > 1990);
}
