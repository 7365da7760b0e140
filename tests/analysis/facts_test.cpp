// Facts: each source, each query, each way that a fact travels.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "analysis/facts_support.hpp"
#include "base/access.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using analysis::Facts;
using analysis::Range;

TEST_CASE("without constraints ranges and forms are all that is known", "[facts]") {
  Graph g;
  const Dim B = g.dim("B", {.min = 1, .max = 64}), T = g.dim("T", {.min = 100, .max = 200});
  const Facts facts = facts_of(g);
  CHECK(facts.equal(B * T, T * B));
  CHECK_FALSE(facts.equal(B, T));
  CHECK(facts.less(B, T));
  CHECK_FALSE(facts.less(T, B));
  CHECK(facts.le(B, 64));
  CHECK_FALSE(facts.le(B, 63));
  const Dim most = std::numeric_limits<std::int64_t>::max();  // to which nothing can be added
  CHECK_FALSE(facts.less(most, most));
  CHECK(facts.divisible(8 * B, 4));
  CHECK_FALSE(facts.divisible(B, 2));
  CHECK_FALSE(facts.divisible(B, 0));
  CHECK(facts.range(B * T) == Range{100, 12800});
  CHECK(facts.canonical(B + T) == B + T);
  CHECK(facts.equal_products({B, T}, {T, B}));
  CHECK_FALSE(facts.equal_products({B, T}, {T, T}));
}

TEST_CASE("BladeDISC, Fig. 3: a reshape says that S3 = 4 S0, its factor and its range", "[facts][papers]") {
  Graph g("fig3");
  const Dim S0 = g.dim("S0", {.min = 512, .max = 65536}), S1 = g.dim("S1"), S3 = g.dim("S3");
  const Tensor product = matmul(abs(g.input("a", f32, {S0, S1})), g.input("b", f32, {S1, 4}));
  g.output("flat", reshape(product, {S3}));
  g.output("wide", broadcast_to(g.input("c", f32, {1}), {S3}));
  const Facts facts = facts_of(g);
  CHECK(facts.equal(S3, S0 * 4));
  CHECK(facts.canonical(S3) == facts.canonical(S0 * 4));
  CHECK(facts.equal_products({S0, 4}, {S3}));
  CHECK(facts.factor(S3) == 4);
  CHECK(facts.divisible(S3, 4));
  CHECK_FALSE(facts.divisible(S3, 8));
  CHECK(facts.range(S3) == Range{2048, 262144});
  CHECK(facts.le(2048, S3));
  CHECK_FALSE(facts.le(2049, S3));
}

TEST_CASE("equalities reach over several symbols, whatever their order", "[facts]") {
  for (const bool backwards : {false, true}) {
    INFO("backwards " << backwards);
    Graph g;
    std::vector<Dim> dims;
    constexpr int count = 300;
    for (int i = 0; i < count; ++i)
      dims.push_back(g.dim("d" + std::to_string(i), {.min = 0, .max = 1000 - i}));
    for (int i = 1; i < count; ++i) {
      const auto at = static_cast<std::size_t>(backwards ? count - i : i);
      g.assume(equal(dims[at - 1], dims[at]));
    }
    const Facts facts = facts_of(g);
    CHECK(facts.equal(dims.front(), dims.back()));
    CHECK(facts.canonical(dims.front()) == facts.canonical(dims[150]));
    CHECK(facts.range(dims.front()) == Range{0, 1000 - (count - 1)});
    g.assume(equal(dims[backwards ? count - 1 : 0], 7));  // behind a chain of 299 replacements
    CHECK(facts_of(g).canonical(dims.front()).is(7));
    CHECK(facts_of(g).canonical(dims.back()).is(7));
  }
}

TEST_CASE("collapse equality: products that no symbol can be replaced for", "[facts]") {
  Graph g;
  const Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C"), D = g.dim("D"), E = g.dim("E");
  g.assume(equal(A * B, C * D));
  const Facts facts = facts_of(g);
  CHECK(facts.equal(A * B, C * D));
  CHECK(facts.equal(A * B * E + 1, E * C * D + 1));
  CHECK(facts.equal_products({A, E, B}, {D, C, E}));
  CHECK_FALSE(facts.equal_products({A, B}, {C, E}));
  CHECK_FALSE(facts.equal(A, C));
}

TEST_CASE("equal extents cancel where their products would have too many terms", "[facts]") {
  Graph g;
  const Dim E = g.dim("E"), F = g.dim("F"), G = g.dim("G");
  g.assume(equal(E, F));
  std::vector<Dim> sums, backwards;
  for (int i = 0; i < 16; ++i) {
    const std::string number = std::to_string(i);
    sums.push_back(g.dim("A" + number) + g.dim("B" + number));
    backwards.insert(backwards.begin(), sums.back());
  }
  const Facts facts = facts_of(g);
  CHECK(facts.equal_products(sums, backwards));
  const auto with = [](std::vector<Dim> dims, const Dim& at_front) {
    dims.insert(dims.begin(), at_front);
    return dims;
  };
  CHECK(facts.equal_products(with(sums, E), with(backwards, F)));
  CHECK_FALSE(facts.equal_products(with(sums, E), with(backwards, G)));
  CHECK_FALSE(facts.equal_products(with(sums, E), backwards));
  CHECK_FALSE(facts.equal_products(sums, with(backwards, E)));
  backwards.back() = backwards.front();
  CHECK_FALSE(facts.equal_products(sums, backwards));
}

TEST_CASE("of two equal products the one of the later symbols becomes the other", "[facts]") {
  Graph g;
  const DimRange range{.min = 1, .max = 1000};
  const Dim A = g.dim("A", range), B = g.dim("B", range), C = g.dim("C", range), D = g.dim("D", range);
  g.assume(equal(2 * A * B, C * D));
  const Facts facts = facts_of(g);
  CHECK(facts.canonical(C * D).to_string() == "2 * A * B");
  CHECK(facts.canonical(A * B).to_string() == "A * B");
  CHECK(facts.equal((A * B + C * D) / 3, A * B));
}

TEST_CASE("factors that two products share count once", "[facts]") {
  Graph g;
  const Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C");
  g.assume(divisible(A * B, 4));
  g.assume(divisible(B * C, 6));
  const Facts facts = facts_of(g);
  CHECK(facts.factor(A * B) == 4);
  CHECK(facts.factor(A * B * C) == 12);  // B = 12 is all that is known to divide it
  CHECK_FALSE(facts.divisible(A * B * C, 24));
}

TEST_CASE("a common factor cancels only where it cannot be 0", "[facts]") {
  for (const std::int64_t least : {0, 1}) {
    INFO("S1 from " << least);
    Graph g;
    const Dim S0 = g.dim("S0"), S1 = g.dim("S1", {.min = least, .max = 4096}), S2 = g.dim("S2"),
              S3 = g.dim("S3");
    g.output("y", reshape(g.input("x", f32, {S0, S1}), {S2, S3, S1}));
    const Facts facts = facts_of(g);
    CHECK(facts.equal_products({S0, S1}, {S2, S3, S1}));
    CHECK(facts.equal(S0, S2 * S3) == (least == 1));
  }
}

TEST_CASE("quotients by one number are common factors only where they divide the same", "[facts]") {
  Graph g;
  const Dim A = g.dim("A", {.min = 1, .max = 99}), B = g.dim("B", {.min = 1, .max = 99}), S = g.dim("S"),
            T = g.dim("T"), U = g.dim("U"), V = g.dim("V");
  g.assume(equal(S * ceil_div(A, 4), T * ceil_div(A, 4)));
  g.assume(equal(U * ceil_div(A, 4), V * ceil_div(B, 4)));
  const Facts facts = facts_of(g);
  CHECK(facts.equal(S, T));
  CHECK_FALSE(facts.equal(U, V));
}

TEST_CASE("a power that is 0 has a root that is 0", "[facts]") {
  Graph g("powers");
  const Dim B = g.dim("B", {.min = 0, .max = 9}), T = g.dim("T", {.min = 0, .max = 9});
  g.assume(equal(B, B * T));
  g.assume(equal(T, B + 1));  // so B B = 0
  const Facts facts = facts_of(g);
  CHECK(facts.canonical(B).is(0));
  CHECK(facts.canonical(T).is(1));
}

TEST_CASE("divisibility travels through sums, products, quotients and remainders", "[facts]") {
  Graph g;
  const Dim B = g.dim("B"), T = g.dim("T"), H = g.dim("H");
  g.assume(divisible(B, 8));
  g.assume(divisible(T, 12));
  g.assume(divisible(H * T, 64));
  const Facts facts = facts_of(g);
  CHECK(facts.divisible(B, 4));
  CHECK_FALSE(facts.divisible(B, 16));
  CHECK(facts.divisible(B + T, 4));
  CHECK_FALSE(facts.divisible(B + T, 8));
  CHECK(facts.divisible(B * T, 96));
  CHECK(facts.divisible(B / 2, 4));
  CHECK(facts.divisible(B % 32, 8));
  CHECK(facts.divisible(3 * H * T * B, 512));
  CHECK_FALSE(facts.divisible(H, 2));
  CHECK(facts.equal(B / 8 * 8, B));
  CHECK(facts.equal(B % 4, 0));
  CHECK(facts.equal_products({B / 8, T, 8}, {T, B}));
}

TEST_CASE("a divisor may be a symbol", "[facts]") {
  Graph g;
  const Dim S = g.dim("S", {.min = 1, .max = 100}), H = g.dim("H", {.min = 1, .max = 100}), T = g.dim("T");
  g.assume(divisible(S, H));
  const Facts facts = facts_of(g);
  CHECK(facts.divisible(S, H));
  CHECK(facts.divisible(S * T, H));
  CHECK(facts.equal(S / H * H, S));
  CHECK_FALSE(facts.divisible(H, S));
}

TEST_CASE("an exact quotient times its divisor is the dividend, and times less is not", "[facts]") {
  Graph g;
  const DimRange range{.min = 1, .max = 100};
  const Dim S = g.dim("S", range), H = g.dim("H", range), T = g.dim("T", range), R = g.dim("R", range);
  g.assume(divisible(S, 2 * H));
  g.assume(divisible(T, H + 1));
  g.assume(divisible(R, H + S));
  const Facts facts = facts_of(g);
  CHECK(facts.equal(S / (2 * H) * (2 * H), S));
  CHECK(facts.equal(S / (2 * H) * (4 * H), 2 * S));
  CHECK_FALSE(facts.equal(S / (2 * H) * H, S));
  CHECK_FALSE(facts.equal(S / (2 * H) * H, 0));
  CHECK_FALSE(facts.equal(T / (H + 1) * H, T));
  CHECK_FALSE(facts.equal(R / (H + S) * H, R));
}

TEST_CASE("a product with a remainder that is 0 says nothing of the remainder", "[facts]") {
  Graph g;
  const Dim A = g.dim("A"), B = g.dim("B");
  g.assume(equal(A % 4 * B, 0));
  CHECK_FALSE(facts_of(g).divisible(A, 4));
  CHECK(facts_of(g).equal(A % 4 * B, 0));
}

TEST_CASE("a relation of divisors holds only where the divisor is 1 or more", "[facts]") {
  Graph g;
  const Dim A = g.dim("A", {.min = 0, .max = 9}), B = g.dim("B", {.min = 1, .max = 9});
  const Facts facts = facts_of(g);
  CHECK_FALSE(facts.holds(divisible(2 * A, A)));
  CHECK(facts.holds(divisible(2 * B, B)));
  CHECK_FALSE(facts.holds(divisible(B, 2 * B)));
}

TEST_CASE("a remainder lies below its divisor, and is the dividend where that is smaller", "[facts]") {
  Graph g;
  const Dim A = g.dim("A", {.min = 3, .max = 7}), B = g.dim("B", {.min = 8, .max = 20}),
            Z = g.dim("Z", {.min = 0, .max = 20});
  const Facts facts = facts_of(g);
  CHECK(facts.range(A % B) == Range{3, 7});
  CHECK(facts.range(A % 7) == Range{0, 6});
  CHECK(facts.range(Z % 30) == Range{0, 20});
  CHECK(facts.range(Z % B) == Range{0, 19});
  CHECK(facts.range((A - 5) % B) == Range{0, 19});
}

TEST_CASE("every term of a form is rewritten", "[facts]") {
  Graph g;
  const Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C"), D = g.dim("D"), E = g.dim("E");
  g.assume(equal(A * B, C * D));
  const Facts facts = facts_of(g);
  CHECK(facts.equal(A * B + A * B * E, C * D + C * D * E));
}

TEST_CASE("a dim that another replaces hands its hint on", "[facts]") {
  Graph g;
  const Dim A = g.dim("A", {.min = 1, .max = 100}), B = g.dim("B", {.min = 1, .max = 100, .hint = 32});
  g.assume(equal(A, B));
  const Facts facts = facts_of(g);
  CHECK(facts.symbols()[0].range.hint == 32);
  CHECK(facts.canonical(A).hint() == 32);
}

TEST_CASE("bounds of products and sums bound what they are made of", "[facts]") {
  Graph g;
  const Dim B = g.dim("B", {.min = 2, .max = 1 << 20}), T = g.dim("T", {.min = 4, .max = 1 << 20}),
            U = g.dim("U");
  g.assume(at_most(B * T, 65536));
  g.assume(at_most(B + U, 5000));
  g.assume(at_least(U, 1000));
  const Facts facts = facts_of(g);
  CHECK(facts.range(B * T) == Range{8, 65536});
  CHECK(facts.range(B).max == 4000);
  CHECK(facts.range(T) == Range{4, 32768});
  CHECK(facts.range(U) == Range{1000, 4998});
  CHECK(facts.range(4 * B * T).max == 262144);
  CHECK(facts.le(B * T * 2, 131072));
  CHECK_FALSE(facts.le(B * T, 65535));
}

TEST_CASE("inequalities between symbols combine", "[facts]") {
  Graph g;
  const Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C");
  g.assume(at_most(A, B));
  g.assume(at_most(B + 1, C));
  const Facts facts = facts_of(g);
  CHECK(facts.le(A, B));
  CHECK(facts.less(A, C));
  CHECK(facts.less(B, C));
  CHECK_FALSE(facts.le(B, A));
  CHECK_FALSE(facts.le(C, B));
  Graph many;  // more bounds than a proof tries: it ends unproven
  const Dim M = many.dim("M"), N = many.dim("N");
  for (int i = 0; i < 20; ++i) many.assume(at_most(many.dim("A" + std::to_string(i)), M));
  CHECK_FALSE(facts_of(many).le(N, M));
  Graph both;
  const Dim X = both.dim("X"), Y = both.dim("Y");
  both.assume(at_most(X, Y));
  both.assume(at_most(Y, X));
  CHECK(facts_of(both).equal(X, Y));
}

TEST_CASE("a proof tries sixteen of the bounds of a term", "[facts]") {
  for (const int useless : {15, 16}) {
    INFO(useless << " bounds that do not help");
    Graph g;
    const Dim M = g.dim("M"), N = g.dim("N");
    for (int i = 0; i < useless; ++i) g.assume(at_most(g.dim("A" + std::to_string(i)), M));
    g.assume(at_most(N, M));
    CHECK(facts_of(g).le(N, M) == (useless < 16));
  }
}

TEST_CASE("a dim is known to be a sum of many", "[facts]") {
  for (const int count : {62, 70}) {  // 64 terms and factors replace a dim, more are a rule
    Graph g;
    const Dim S = g.dim("S", {.min = 0, .max = 1000});
    Dim sum = 0;
    for (int i = 0; i < count; ++i) sum = sum + 2 * g.dim("A" + std::to_string(i), {.min = 1, .max = 100});
    g.assume(equal(S, sum));
    const Facts facts = facts_of(g);
    INFO(count << " dims: " << facts.canonical(S).to_string());
    CHECK(facts.equal(S, sum));
    CHECK(facts.range(S).min == 2 * count);
    CHECK((facts.canonical(S) == facts.canonical(sum)));
  }
}

TEST_CASE("an equality narrows the ranges on both sides", "[facts]") {
  Graph g;
  const Dim S0 = g.dim("S0", {.min = 0, .max = 64}), S2 = g.dim("S2", {.min = 1, .max = 100}),
            S3 = g.dim("S3", {.min = 2, .max = 100});
  g.assume(equal(S0, S2 * S3));
  const Facts facts = facts_of(g);
  CHECK(facts.range(S0) == Range{2, 64});
  CHECK(facts.range(S2) == Range{1, 32});
  CHECK(facts.range(S3) == Range{2, 64});
  CHECK(facts.range(S2 * S3) == Range{2, 64});
  CHECK(facts.symbols()[1].range.max == 32);
}

TEST_CASE("what ops need is known: siblings, contracted dims, concat, slices, shape values", "[facts]") {
  Graph g;
  const Dim A = g.dim("A"), B = g.dim("B"), K = g.dim("K"), L = g.dim("L"), N = g.dim("N"), M = g.dim("M"),
            S = g.dim("S");
  const Tensor sum = g.input("a", f32, {A, 4}) + g.input("b", f32, {B, 4});
  const Tensor product = matmul(g.input("p", f32, {A, K}), g.input("q", f32, {L, 3}));
  const Tensor joined = concat({g.input("n", f32, {N, 2}), g.input("m", f32, {M, 2})}, 1);
  const Tensor part = slice(g.input("s", f32, {S}), 0, 2, 10);
  for (const Tensor& out : {sum, product, joined, part}) {
    g.output("o" + std::to_string(ir_of(g).outputs.size()), out);
  }
  const Facts facts = facts_of(g);
  CHECK(facts.equal(A, B));
  CHECK(facts.equal(K, L));
  CHECK(facts.equal(N, M));
  CHECK(facts.le(10, S));
  CHECK_FALSE(facts.equal(A, K));
}

TEST_CASE("a dead op's needs are no facts", "[facts]") {
  Graph g;
  const Dim A = g.dim("A"), B = g.dim("B");
  const Tensor a = g.input("a", f32, {A}), b = g.input("b", f32, {B});
  (void)(a + b);
  g.output("y", a * 2);
  CHECK_FALSE(facts_of(g).equal(A, B));
  CHECK(analysis::guards_of(ir_of(g)).empty());
}

TEST_CASE("dims without a bound are related by sums", "[facts]") {
  Graph g;
  const DimRange range{.min = 0, .max = std::numeric_limits<std::int64_t>::max()};
  const Dim A = g.dim("A", range), B = g.dim("B", range), C = g.dim("C", range), S = g.dim("S", range);
  g.assume(equal(S + B + 5, A + C));
  g.assume(at_most(S, 9));  // another round, in which S is replaced
  const Facts facts = facts_of(g);
  CHECK(facts.equal(S + B + 5, A + C));
  CHECK(facts.le(S, 9));
}

TEST_CASE("expressions beyond 63 bits prove nothing and break nothing", "[facts]") {
  Graph g;
  const std::int64_t huge = std::int64_t{1} << 40;
  const Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C");
  g.assume(equal(B, A * huge));
  g.assume(equal(C, B * huge));
  const Facts facts = facts_of(g);  // B <= 2^31 leaves A = 0
  CHECK(facts.range(A) == Range{0, 0});
  CHECK(facts.range(C) == Range{0, 0});
  CHECK_FALSE(facts.equal(A * huge * 1024, C + 1));
  CHECK_FALSE(facts.divisible(A, B));
  const Dim P = Dim::symbol("P", {.min = 1, .max = 100});
  CHECK_FALSE(Facts().equal_products({huge, huge, P}, {huge * 4, huge, P + 1}));
}
