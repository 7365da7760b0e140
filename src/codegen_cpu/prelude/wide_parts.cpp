// Parts of f64 and i64. A part has equally many lanes in every type, so that one with 8 bytes for each lane
// is a pair of machine vectors. g++ 12 also has vectors of twice the machine's size, but it compares their
// elements one by one, and chooses between them one by one.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/prelude/parts.hpp"

namespace fuse::codegen {

const std::string_view cpu_wide_parts = R"(
// Two machine vectors. Copies are written out: compilers would copy the bytes of both through memory.
template <class V> struct twin {
  using element = __typeof__(V{}[0]);
  V a, b;
  twin() = default;
  FUSE_METHOD twin(V first, V second) : a(first), b(second) {}
  FUSE_METHOD twin(const twin& v) : a(v.a), b(v.b) {}
  FUSE_METHOD twin& operator=(const twin& v) {
    a = v.a, b = v.b;
    return *this;
  }
  FUSE_METHOD element operator[](int i) const {
    constexpr int n = sizeof(V) / sizeof(element);
    return i < n ? a[i] : b[i - n];
  }
  // The same bits.
  template <class W> FUSE_METHOD explicit operator twin<W>() const { return {(W)a, (W)b}; }
};
typedef long long i64_part __attribute__((vector_size(FUSE_VECTOR_BYTES)));
typedef twin<f64_part> f64p;
typedef twin<i64_part> i64p;
template <class V> using element_of = typename twin<V>::element;
#define FUSE_OPERATOR(op, result)                                                                        \
  template <class V> FUSE_INLINE twin<result> operator op(const twin<V>& x, const twin<V>& y) {          \
    return {(result)(x.a op y.a), (result)(x.b op y.b)};                                                 \
  }                                                                                                      \
  template <class V> FUSE_INLINE twin<result> operator op(const twin<V>& x, element_of<V> y) {           \
    return {(result)(x.a op (y - V{})), (result)(x.b op (y - V{}))};                                     \
  }                                                                                                      \
  template <class V> FUSE_INLINE twin<result> operator op(element_of<V> x, const twin<V>& y) {           \
    return {(result)((x - V{}) op y.a), (result)((x - V{}) op y.b)};                                     \
  }
FUSE_OPERATOR(+, V) FUSE_OPERATOR(-, V) FUSE_OPERATOR(*, V) FUSE_OPERATOR(/, V)
FUSE_OPERATOR(&, V) FUSE_OPERATOR(|, V) FUSE_OPERATOR(^, V)
FUSE_OPERATOR(==, i64_part) FUSE_OPERATOR(!=, i64_part) FUSE_OPERATOR(<, i64_part) FUSE_OPERATOR(<=, i64_part)
FUSE_OPERATOR(>, i64_part) FUSE_OPERATOR(>=, i64_part)
#undef FUSE_OPERATOR
template <class V> FUSE_INLINE twin<V>& operator|=(twin<V>& x, const twin<V>& y) { return x = x | y; }
template <class V> FUSE_INLINE twin<V> operator~(const twin<V>& x) { return {~x.a, ~x.b}; }
template <class V> FUSE_INLINE twin<V> operator-(const twin<V>& x) { return {-x.a, -x.b}; }

// `x` where the test has all bits, else `y`.
template <class M, class P> FUSE_INLINE P choose(M test, P x, P y) { return test ? x : y; }
template <class V>
FUSE_INLINE twin<V> choose(const twin<i64_part>& test, const twin<V>& x, const twin<V>& y) {
  return {test.a ? x.a : y.a, test.b ? x.b : y.b};
}
// The same values in another type.
template <class P> struct half_of { typedef __typeof__(P{}[0]) type __attribute__((vector_size(sizeof(P) / 2))); };
template <class P> struct part_as_type {
  template <class V> static FUSE_METHOD P from(V x) { return __builtin_convertvector(x, P); }
  template <class V> static FUSE_METHOD P from(const twin<V>& x) {
    typename half_of<P>::type half[2] = {__builtin_convertvector(x.a, typename half_of<P>::type),
                                         __builtin_convertvector(x.b, typename half_of<P>::type)};
    P result;
    __builtin_memcpy(&result, half, sizeof result);
    return result;
  }
};
template <class W> struct part_as_type<twin<W>> {
  template <class V> static FUSE_METHOD twin<W> from(V x) {
    typename half_of<V>::type half[2];
    __builtin_memcpy(half, &x, sizeof x);
    return {__builtin_convertvector(half[0], W), __builtin_convertvector(half[1], W)};
  }
  template <class V> static FUSE_METHOD twin<W> from(const twin<V>& x) {
    return {__builtin_convertvector(x.a, W), __builtin_convertvector(x.b, W)};
  }
};
template <class P, class V> FUSE_INLINE P part_as(const V& x) { return part_as_type<P>::from(x); }
// Lane i has what lane i ^ d had.
template <int d, class V> FUSE_INLINE V exchanged(V v) {
  constexpr int n = sizeof(V) / sizeof(V{}[0]);
#ifdef __clang__
  V r;
  for (int i = 0; i < n; ++i) r[i] = v[i ^ d];
  return r;
#else
  typedef decltype(v == v) I;
  I from;
  for (int i = 0; i < n; ++i) from[i] = i ^ d;
  return __builtin_shuffle(v, from);
#endif
}
template <int d, class V> FUSE_INLINE twin<V> exchanged(const twin<V>& v) {
  if constexpr (d >= part_lanes / 2) return {v.b, v.a};
  else return {exchanged<d>(v.a), exchanged<d>(v.b)};
}
)";

}  // namespace fuse::codegen
