// Halves computed two at a time. SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/pack_pairs.hpp"

#include <functional>

#include "ir/kernel/passes/vectorise.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::Kernel;

namespace {

Kernel packed(const Graph& g, int vector) {
  Kernel result =
      kernel::pack_pairs(kernel::vectorise(lowered(g, {.splits = schedule::nest_of_elements(128, vector)})));
  kernel::verify(result, target_profile("h200").shared_per_block);
  return result;
}

std::size_t pairs_of(const Kernel& kernel, const std::string& what) {
  const std::string text = print(kernel);
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

template <class F>
Graph of_halves(DType dtype, F&& body) {
  Graph g("halves");
  const Tensor x = g.input("x", dtype, {512, 256}), y = g.input("y", dtype, {512, 256});
  g.output("z", body(g, x, y));
  return g;
}

}  // namespace

TEST_CASE("pack_pairs computes neighbours of a half type at once", "[kernel]") {
  const Graph g =
      of_halves(bf16, [](Graph&, const Tensor& x, const Tensor& y) { return maximum(x * 0.5 + y, 0); });
  const Kernel before = kernel::vectorise(lowered(g, {.splits = schedule::nest_of_elements(128, 8)}));
  check_golden("kernel/pack_pairs.txt", print(before) + print(packed(g, 8)));
}

TEST_CASE("every op of Trait::pairs has pairs, others are computed in f32", "[kernel]") {
  for (const DType dtype : {f16, bf16}) {
    const auto all = packed(
        of_halves(dtype, [](Graph&, const Tensor& x,
                            const Tensor& y) { return minimum(abs(-(x - y)), maximum(x + y, x * y)); }),
        8);
    INFO(print(all));
    for (const char* op : {"neg", "abs", "sub", "add", "mul", "max", "min"})
      CHECK(pairs_of(all, std::string(" = ") + op + " ") == 1);
    CHECK(pairs_of(all, "= convert ") == 0);
    const auto exponential =
        packed(of_halves(dtype, [](Graph&, const Tensor& x, const Tensor& y) { return exp(x) / y; }), 8);
    INFO(print(exponential));
    CHECK(pairs_of(exponential, "= exp ") == 2);  // one for each element
    CHECK(pairs_of(exponential, "= div ") == 2);
  }
}

TEST_CASE("a constant that the half type does not have is not packed", "[kernel]") {
  // In f32 from the start: x converted, times a third, rounded once.
  const Graph g = of_halves(bf16, [](Graph&, const Tensor& x, const Tensor&) {
    return convert(convert(x, f32) * (1.0 / 3), bf16);
  });
  const Kernel kernel = packed(g, 8);
  INFO(print(kernel));
  CHECK(pairs_of(kernel, ": f32 = mul ") == 2);
  CHECK(pairs_of(kernel, "2 x bf16 = pair ") == 1);
}

TEST_CASE("f32, and elements that are walked one by one, have no pairs", "[kernel]") {
  const auto sum = [](Graph&, const Tensor& x, const Tensor& y) { return x + y; };
  CHECK(pairs_of(packed(of_halves(f32, sum), 4), "2 x ") == 0);
  CHECK(pairs_of(packed(of_halves(bf16, sum), 1), "2 x ") == 0);
}

TEST_CASE("values read from pairs one at a time: masks, selects, sums of a row", "[kernel][emulated]") {
  for (const DType dtype : {f16, bf16}) {
    Graph g("mixed");
    const Tensor x = g.input("x", dtype, {64, 256}), y = g.input("y", dtype, {64, 256});
    const Tensor mask = x > y;
    const Tensor chosen = select(mask, x * y, y - x);
    g.output("chosen", chosen);
    g.output("total", sum(chosen, {1}));
    g.output("largest", maximum(chosen + 1, 0));
    const fuzz::Outcome outcome =
        fuzz::run_alone(case_of(g, {.profile = "h200", .checked = true, .optimization = 0}));
    INFO(outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}

namespace {

/// for i in [0, 8) unrolled { h = load a[i]; w = convert h; r = convert w; store b[i] = r } of one thread,
/// whose pairs are wanted.
struct HalfLoop {
  enum : kernel::VarId { h, w, r, state, other };
  enum : kernel::BufferId { a, b, wide };
  Kernel kernel;
  kernel::For loop{.name = "i", .begin = 0, .end = 8, .unrolled = true, .body = {}};

  HalfLoop() {
    using namespace fuse::kernel;  // NOLINT
    kernel.name = "halves";
    kernel.block_threads = 32;
    kernel.buffers = {{"a", f16, Space::local, 32, true},
                      {"b", f16, Space::local, 32, true},
                      {"x", f32, Space::local, 32, true}};
    kernel.vars = {{"h", f16}, {"w", f32}, {"r", f16}, {"state", f32}, {"other", f32}};
    kernel.reductions.push_back({.state = {f32}, .identity = {{}}, .region = {}, .single = ir::Op::add});
    loop.body = {{Let{h, Load{a, element(), {}, {}}}},
                 {Let{w, Compute{ir::Op::convert, {h}}}},
                 {Let{r, Compute{ir::Op::convert, {w}}}},
                 {Store{b, element(), r}}};
  }
  static Dim element() { return Dim::index("i", 8); }
  static kernel::Stmt combined(kernel::VarId incoming) { return {kernel::Combine{0, {state}, {incoming}}}; }

  bool packs() {
    kernel.body = {{loop}};
    return kernel::print(kernel::pack_pairs(kernel)) != kernel::print(kernel);
  }
};

bool packs(const std::function<void(HalfLoop&)>& change) {
  HalfLoop halves;
  change(halves);
  return halves.packs();
}

}  // namespace

TEST_CASE("pack_pairs rewrites unrolled loops of whole pairs, in which neighbours may change places",
          "[kernel]") {
  using namespace fuse::kernel;  // NOLINT
  CHECK(packs([](HalfLoop&) {}));
  CHECK_FALSE(packs([](HalfLoop& l) { l.loop.unrolled = false; }));
  CHECK_FALSE(packs([](HalfLoop& l) { l.loop.begin = 2; }));
  CHECK_FALSE(packs([](HalfLoop& l) { l.loop.step = 2; }));
  CHECK_FALSE(packs([](HalfLoop& l) { l.loop.end = 7; }));
  CHECK_FALSE(packs([](HalfLoop& l) { l.loop.body.push_back({Barrier{}}); }));
  CHECK_FALSE(packs([](HalfLoop& l) { l.loop.body.clear(); }));
  // The second element's loads stand before the first one's stores.
  CHECK(packs([](HalfLoop& l) { std::get<Store>(l.loop.body[3].node).buffer = HalfLoop::a; }));
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body[3].node = Store{HalfLoop::a, HalfLoop::element() + 2, HalfLoop::r};
  }));
  CHECK(packs([](HalfLoop& l) {
    l.loop.body[3].node = Store{HalfLoop::b, HalfLoop::element() + 2, HalfLoop::r};
  }));
  // A state takes one element after the other, and nothing reads it on the way.
  CHECK(packs([](HalfLoop& l) { l.loop.body.push_back(HalfLoop::combined(HalfLoop::w)); }));
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body.push_back(HalfLoop::combined(HalfLoop::w));
    l.loop.body.push_back(HalfLoop::combined(HalfLoop::w));
  }));
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body.push_back(HalfLoop::combined(HalfLoop::w));
    l.loop.body.push_back({Let{HalfLoop::other, Compute{ir::Op::neg, {HalfLoop::state}}}});
  }));
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body[1].node = Let{HalfLoop::w, Compute{ir::Op::neg, {HalfLoop::state}}};
    l.loop.body.push_back(HalfLoop::combined(HalfLoop::w));
  }));
  // Nothing but constants and single halves of memory is made: there is no pair.
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body.erase(l.loop.body.begin() + 1, l.loop.body.begin() + 3);
    l.loop.body[0].node = Let{HalfLoop::r, Constant{1, 1}};
  }));
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body.erase(l.loop.body.begin() + 1, l.loop.body.begin() + 3);
    l.kernel.buffers[HalfLoop::a].space = Space::global;
    l.loop.body[0].node = Let{HalfLoop::r, Load{HalfLoop::a, HalfLoop::element(), {}, {}}};
  }));
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body.erase(l.loop.body.begin() + 1, l.loop.body.begin() + 3);
    l.loop.body[0].node = Let{HalfLoop::r, Load{HalfLoop::a, HalfLoop::element() + 1, {}, {}}};
  }));
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body.erase(l.loop.body.begin() + 1, l.loop.body.begin() + 3);
    l.loop.body[0].node = Let{HalfLoop::r, Load{HalfLoop::a, 2 * HalfLoop::element(), {}, {}}};
  }));
}

TEST_CASE("floats alone are no pairs, though they lie side by side", "[kernel]") {
  using namespace fuse::kernel;  // NOLINT
  CHECK_FALSE(packs([](HalfLoop& l) {
    l.loop.body = {{Let{HalfLoop::w, Load{HalfLoop::wide, HalfLoop::element(), {}, {}}}},
                   {Store{HalfLoop::wide, HalfLoop::element(), HalfLoop::w}}};
  }));
}

TEST_CASE("a constant is one of a pair where the half type has it, whichever it is", "[kernel]") {
  struct Value {
    double value;
    bool in_f16, in_bf16;
  };
  for (const Value& each :
       {Value{0.5, true, true}, {1 + 0x1p-10, true, false}, {0x1p20, false, true}, {0.1f, false, false}}) {
    for (const DType dtype : {f16, bf16}) {
      const Kernel kernel = packed(
          of_halves(dtype, [&](Graph&, const Tensor& x,
                               const Tensor&) { return convert(convert(x, f32) * each.value, dtype); }),
          2);
      INFO(each.value << ' ' << print(kernel));
      CHECK(pairs_of(kernel, "2 x " + std::string(to_string(dtype)) + " = mul ") ==
            ((dtype == f16 ? each.in_f16 : each.in_bf16) ? 1U : 0U));
    }
  }
}

TEST_CASE("only f32 values are rounded by pairs: integers, doubles and halves of another type are not",
          "[kernel]") {
  using namespace fuse::kernel;  // NOLINT
  for (const DType from : {f32, f64, i32, i64, u8, boolean, bf16}) {
    INFO(to_string(from));
    CHECK(packs([&](HalfLoop& l) {
            l.kernel.buffers[HalfLoop::wide] = {"x", from, Space::global, 32, true};
            l.kernel.vars[HalfLoop::w].dtype = from;
            l.loop.body.erase(l.loop.body.begin());
            l.loop.body[0].node = Let{HalfLoop::w, Load{HalfLoop::wide, HalfLoop::element(), {}, {}}};
          }) == (from == f32));
  }
}

TEST_CASE("integers beside halves stay single, though floats are made of them and rounded to them",
          "[kernel]") {
  using namespace fuse::kernel;  // NOLINT
  enum : VarId { whole = 5, widened, sum, rounded };
  HalfLoop l;
  l.kernel.buffers[HalfLoop::wide] = {"x", i32, Space::local, 32, true};
  for (const auto& [name, dtype] :
       {std::pair{"whole", i32}, {"widened", f32}, {"sum", f32}, {"rounded", i32}})
    l.kernel.vars.push_back({name, dtype});
  l.loop.body.push_back({Let{whole, Load{HalfLoop::wide, HalfLoop::element(), {}, {}}}});
  l.loop.body.push_back({Let{widened, Compute{ir::Op::convert, {whole}}}});
  l.loop.body.push_back({Let{sum, Compute{ir::Op::add, {widened, widened}}}});
  l.loop.body.push_back({Let{rounded, Compute{ir::Op::convert, {sum}}}});
  l.loop.body.push_back({Store{HalfLoop::wide, HalfLoop::element(), rounded}});
  CHECK(l.packs());
  const Kernel kernel = pack_pairs(l.kernel);
  INFO(print(kernel));
  CHECK(pairs_of(kernel, "2 x i32") == 0);
  for (const char* single : {": i32 = load x[", ": f32 = add ", ": i32 = convert sum_"})
    CHECK(pairs_of(kernel, single) == 2);
}

TEST_CASE("of a pair only floats are read without a conversion of each half", "[kernel]") {
  using namespace fuse::kernel;  // NOLINT
  for (const DType to : {f32, f64, bf16, i64, i32, i8, u8, boolean}) {
    INFO(to_string(to));
    HalfLoop l;  // and x[i] = convert h, of another type
    l.kernel.reductions.clear();
    l.kernel.buffers[HalfLoop::wide] = {"x", to, Space::local, 32, true};
    l.kernel.vars.push_back({"single", to});
    const VarId single = HalfLoop::other + 1;
    l.loop.body.push_back({Let{single, Compute{ir::Op::convert, {HalfLoop::h}}}});
    l.loop.body.push_back({Store{HalfLoop::wide, HalfLoop::element(), single}});
    CHECK(l.packs());
    const Kernel kernel = pack_pairs(l.kernel);
    INFO(print(kernel));
    CHECK_NOTHROW(verify(kernel, target_profile("h200").shared_per_block));
    const std::string type(to_string(to));
    CHECK(pairs_of(kernel, ": " + type + " = convert ") == (to == f32 ? 0U : 2U));
  }
}

TEST_CASE("a pair is stored half by half where its elements do not lie side by side in an array",
          "[kernel]") {
  using namespace fuse::kernel;  // NOLINT
  struct Way {
    Space space;
    Index index;
    std::size_t stores;
  };
  const Dim i = HalfLoop::element();
  for (const Way& way :
       {Way{Space::local, i, 1}, Way{Space::local, i + 8, 1}, Way{Space::local, 2 * i, 2},
        Way{Space::local, i + 1, 2}, Way{Space::local, 7 - i, 2}, Way{Space::global, i, 2}}) {
    HalfLoop l;  // and c[index] = r, which is a pair already
    l.kernel.reductions.clear();
    l.kernel.buffers.push_back({"c", f16, way.space, 32, true});
    l.loop.body.push_back({Store{HalfLoop::wide + 1, way.index, HalfLoop::r}});
    CHECK(l.packs());
    const Kernel kernel = pack_pairs(l.kernel);
    INFO(print(kernel));
    CHECK_NOTHROW(verify(kernel, target_profile("h200").shared_per_block));
    CHECK(pairs_of(kernel, "store b[") == 1);
    CHECK(pairs_of(kernel, "store c[") == way.stores);
  }
}
