// Attention with masks, offsets, grouped heads and a cache; rotary embeddings. Against loops, in f64.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fuse/functions.hpp>

#include "value_support.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {

constexpr int heads = 4, groups = 2, queries = 3, keys = 7;

/// Attention over [1, heads, queries, width] and [1, groups, keys, width]; `score` changes the score of a
/// pair.
template <class F>
std::vector<double> expected_attention(const std::vector<double>& q, const std::vector<double>& k,
                                       const std::vector<double>& v, F score) {
  std::vector<double> result(heads * queries * width, 0.0);
  for (int h = 0; h < heads; ++h) {
    const int group = h / (heads / groups);
    for (int i = 0; i < queries; ++i) {
      std::vector<double> scores;
      for (int j = 0; j < keys; ++j) {
        double dot = 0;
        for (int d = 0; d < width; ++d)
          dot += q[(h * queries + i) * width + d] * k[(group * keys + j) * width + d];
        scores.push_back(score(h, i, j, dot));
      }
      const std::vector<double> p = softmax_row(scores);
      for (int j = 0; j < keys; ++j) {
        for (int d = 0; d < width; ++d) {
          result[(h * queries + i) * width + d] += p[j] * v[(group * keys + j) * width + d];
        }
      }
    }
  }
  return result;
}

struct Parts {
  Graph g;
  Tensor q = g.input("q", f64, {1, heads, queries, width});
  Tensor k = g.input("k", f64, {1, groups, keys, width});
  Tensor v = g.input("v", f64, {1, groups, keys, width});
  std::vector<double> at_q = wave(heads * queries * width), at_k = wave(groups * keys * width, 1.5),
                      at_v = wave(groups * keys * width, 0.7);
  runtime::Values values = {{"q", host(at_q, {1, heads, queries, width})},
                            {"k", host(at_k, {1, groups, keys, width})},
                            {"v", host(at_v, {1, groups, keys, width})}};
};

runtime::HostTensor integer(std::int64_t value) {
  runtime::ReferenceTensor tensor(i64, {});
  tensor.elements<std::int64_t>()[0] = value;
  return tensor.to_host();
}

}  // namespace

TEST_CASE("attention: heads share the keys of their group", "[builder][functions]") {
  Parts p;
  p.g.output("y", attention(p.q, p.k, p.v));
  require_near(run(p.g, p.values), expected_attention(p.at_q, p.at_k, p.at_v, [](int, int, int, double dot) {
                 return dot / std::sqrt(width);
               }));
}

TEST_CASE("attention: a causal mask starts at the offset", "[builder][functions]") {
  const auto expected = [](const Parts& p, int offset) {
    return expected_attention(p.at_q, p.at_k, p.at_v, [=](int, int i, int j, double dot) {
      return j <= i + offset ? dot * 0.5 : -inf;
    });
  };
  Parts number, known_later;
  number.g.output("y", attention(number.q, number.k, number.v, {.causal = true, .offset = 2, .scale = 0.5}));
  require_near(run(number.g, number.values), expected(number, 2));
  const Tensor position = known_later.g.input("position", i64, {});
  known_later.g.output("y", attention(known_later.q, known_later.k, known_later.v,
                                      {.causal = true, .offset = position, .scale = 0.5}));
  for (const int offset : {0, 4, 100}) {
    known_later.values.insert_or_assign("position", integer(offset));
    require_near(run(known_later.g, known_later.values), expected(known_later, offset));
  }
  CHECK(code_of([&] { attention(number.q, number.k, number.v, {.causal = true}); }) ==
        ErrorCode::shape_mismatch);
}

TEST_CASE("attention: a mask chooses, or is added", "[builder][functions]") {
  std::vector<double> added = wave(heads * keys, 2);
  Parts bias, choice;
  const Tensor term = bias.g.input("bias", f64, {heads, 1, keys});
  bias.g.output("y", attention(bias.q, bias.k, bias.v, {.mask = term, .scale = 1}));
  bias.values.insert_or_assign("bias", host(added, {heads, 1, keys}));
  require_near(run(bias.g, bias.values),
               expected_attention(bias.at_q, bias.at_k, bias.at_v, [&](int h, int, int j, double dot) {
                 return dot + added[static_cast<std::size_t>(h * keys + j)];
               }));
  const Tensor lengths = choice.g.input("term", f64, {keys});
  choice.g.output("y", attention(choice.q, choice.k, choice.v, {.mask = lengths < 0, .scale = 1}));
  added.resize(keys);
  choice.values.insert_or_assign("term", host(added, {keys}));
  require_near(run(choice.g, choice.values),
               expected_attention(choice.at_q, choice.at_k, choice.at_v, [&](int, int, int j, double dot) {
                 return added[static_cast<std::size_t>(j)] < 0 ? dot : -inf;
               }));
}

TEST_CASE("attention says which numbers do not fit", "[builder][functions]") {
  Graph g;
  const Tensor q = g.input("q", f32, {2, 4, 3, 8}), three = g.input("three", f32, {2, 3, 5, 8});
  CHECK(error_of([&](auto& at) { at = here(), attention(q, three, three); }) ==
        "HERE: attention(f32[2, 4, 3, 8], f32[2, 3, 5, 8], f32[2, 3, 5, 8]): the heads of q, 4, are not "
        "known to be a "
        "multiple of those of k, 3\n"
        "  hint: heads that share keys and values stand together: 8 heads of q and 2 of k make groups of 4");
  const Tensor k = g.input("k", f32, {2, 2, 5, 8}), ints = g.input("ints", i32, {3, 5}),
               tall = g.input("tall", f32, {4, 5});
  CHECK(code_of([&] { attention(q, k, k, {.mask = ints}); }) == ErrorCode::dtype_mismatch);
  CHECK(error_of([&](auto& at) { at = here(), attention(q, k, k, {.mask = tall}); }) ==
        "HERE: attention(f32[2, 4, 3, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 8], f32[4, 5]): the mask does not "
        "broadcast to "
        "the scores, f32[2, 4, 3, 5]\n"
        "  hint: a mask is [queries, keys], with heads and batch before them where they matter, or 1 for any "
        "of these");
  CHECK(code_of([&] { attention(q, k, k, {.offset = 2}); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { attention(q, k, k, {.causal = true, .offset = 1.5}); }) == ErrorCode::invalid_argument);
  const Tensor real = g.input("real", f32, {});
  CHECK(code_of([&] { attention(q, k, k, {.causal = true, .offset = real}); }) ==
        ErrorCode::invalid_argument);
  CHECK(attention(q, k, k, {.causal = true, .offset = std::int64_t{1} << 62}).type_string() ==
        "f32[2, 4, 3, 8]");
}

TEST_CASE("cache_append writes at a position and keeps the rest", "[builder][functions]") {
  Graph g;
  const Tensor cache = g.input("cache", f64, {1, 1, rows + 1, width}),
               fresh = g.input("new", f64, {1, 1, 1, width});
  g.output("y", cache_append(cache, fresh, g.input("position", i64, {})), cache);
  const std::vector<double> old = wave((rows + 1) * width), values = wave(width, 9);
  std::vector<double> expected = old;
  std::copy(values.begin(), values.end(), expected.begin() + 2 * width);
  require_near(run(g, {{"cache", host(old, {1, 1, rows + 1, width})},
                       {"new", host(values, {1, 1, 1, width})},
                       {"position", integer(2)}}),
               expected);
}

TEST_CASE("cache_append takes what fits the cache", "[builder][functions]") {
  Graph g;
  const Tensor cache = g.input("cache", f32, {2, 1, 4, 3});
  CHECK(code_of([&] {
          cache_append(cache, g.input("a", f32, {1, 1, 1, 3}), 0);
        }) == ErrorCode::shape_mismatch);
  CHECK(code_of([&] {
          cache_append(cache, g.input("b", f32, {2, 1, 1, 2}), 0);
        }) == ErrorCode::shape_mismatch);
}

TEST_CASE("rope turns pairs by the position", "[builder][functions]") {
  constexpr int length = 3, pairs = 4;
  const std::vector<double> x = wave(2 * length * 2 * pairs);
  for (const bool interleaved : {false, true}) {
    std::vector<double> expected(x.size());
    for (int row = 0; row < 2 * length; ++row) {
      for (int i = 0; i < pairs; ++i) {
        const double angle = (row % length + 5) * std::pow(100.0, -2.0 * i / (2 * pairs));
        const int a = row * 2 * pairs + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + pairs;
        expected[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
        expected[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
      }
    }
    Graph g;
    const Tensor t = g.input("x", f64, {2, length, 2 * pairs});
    const Tensor positions = g.iota(i64, {length}, 0) + 5;
    g.output("y", rope(t, positions, {.base = 100, .interleaved = interleaved}));
    require_near(run(g, {{"x", host(x, {2, length, 2 * pairs})}}), expected);
  }
  Graph g;
  CHECK(code_of([&] {
          rope(g.input("x", f32, {2, 3}), g.input("p", i64, {2}));
        }) == ErrorCode::invalid_argument);
}
