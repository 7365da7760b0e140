// What a kernel of the cpu device computes with: 32 lanes of a type, masks, and indices that differ by lane.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/prelude/parts.hpp"

namespace fuse::codegen {

const std::string_view cpu_parts = R"(
#ifdef __AVX512F__
#define FUSE_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define FUSE_VECTOR_BYTES 32
#else
#define FUSE_VECTOR_BYTES 16
#endif
#define FUSE_METHOD inline __attribute__((always_inline))
#define FUSE_INLINE static FUSE_METHOD
// A warp has 32 lanes, in parts: a part is a machine vector of f32, and has as many lanes of any other type.
constexpr int part_lanes = FUSE_VECTOR_BYTES / 4;
constexpr int parts = 32 / part_lanes;
#define FUSE_EACH_PART _Pragma("GCC unroll 8") for (int k = 0; k < parts; ++k)
typedef float f32p __attribute__((vector_size(FUSE_VECTOR_BYTES)));
typedef int i32p __attribute__((vector_size(FUSE_VECTOR_BYTES)));
typedef unsigned u32p __attribute__((vector_size(FUSE_VECTOR_BYTES)));
typedef unsigned short u16p __attribute__((vector_size(FUSE_VECTOR_BYTES / 2)));
typedef short i16p __attribute__((vector_size(FUSE_VECTOR_BYTES / 2)));
typedef signed char i8p __attribute__((vector_size(FUSE_VECTOR_BYTES / 4)));
typedef unsigned char u8p __attribute__((vector_size(FUSE_VECTOR_BYTES / 4)));
)";

const std::string_view cpu_lanes = R"(
// How the lanes of a type lie in registers, and in memory. A lane of a mask has all bits or none. One of bf16 is the float
// of the same value, so that only loads and stores convert.
template <class T> struct lane_of;
template <> struct lane_of<float> { using part = f32p; using stored = f32p; using test = i32p; };
template <> struct lane_of<double> { using part = f64p; using stored = f64p; using test = i64p; };
template <> struct lane_of<int> { using part = i32p; using stored = i32p; using test = i32p; };
template <> struct lane_of<long long> { using part = i64p; using stored = i64p; using test = i64p; };
template <> struct lane_of<signed char> { using part = i8p; using stored = i8p; using test = i8p; };
template <> struct lane_of<unsigned char> { using part = u8p; using stored = u8p; using test = i8p; };
template <> struct lane_of<f16> { using part = u16p; using stored = u16p; using test = i16p; };
template <> struct lane_of<bf16> { using part = f32p; using stored = u16p; using test = i32p; };
template <> struct lane_of<bool> { using part = i32p; using stored = u8p; using test = i32p; };
template <class T> using part_of = typename lane_of<T>::part;
template <class T> using stored_of = typename lane_of<T>::stored;
template <class T> using test_of = typename lane_of<T>::test;
// Copies go part by part: compilers would copy the bytes of the whole through memory.
template <class T> struct vec {
  part_of<T> p[parts];
  vec() = default;
  FUSE_METHOD vec(const vec& v) { FUSE_EACH_PART p[k] = v.p[k]; }
  FUSE_METHOD vec& operator=(const vec& v) {
    FUSE_EACH_PART p[k] = v.p[k];
    return *this;
  }
};
template <class T> struct as_given { using type = T; };
template <class T> using given = typename as_given<T>::type;  // takes no part in deduction

struct prefix { int n; };                   // the mask of the lanes below n
struct mask { i32p p[parts]; };             // the lanes of which all bits are set
template <class I> struct run { I base; };  // the index base + lane

template <class P> FUSE_INLINE P part_from(const void* from) {
  P p;
  __builtin_memcpy(&p, from, sizeof p);
  return p;
}
template <class T> FUSE_INLINE part_of<T> loaded(stored_of<T> s) {
  if constexpr (__is_same(T, bool)) return __builtin_convertvector(s, i32p) != 0;
  else if constexpr (__is_same(T, bf16)) return part_from_bf16(s);
  else return s;
}
template <class T> FUSE_INLINE stored_of<T> to_store(part_of<T> p) {
  if constexpr (__is_same(T, bool)) return __builtin_convertvector(p & 1, u8p);
  else if constexpr (__is_same(T, bf16)) return part_narrow((u32p)p >> 16);
  else return p;
}
template <class T> FUSE_INLINE vec<T> from_array(const T* a) {
  vec<T> v;
  FUSE_EACH_PART v.p[k] = loaded<T>(part_from<stored_of<T>>(a + k * part_lanes));
  return v;
}
template <class T> FUSE_INLINE void to_array(const vec<T>& v, T* a) {
  FUSE_EACH_PART {
    const stored_of<T> s = to_store<T>(v.p[k]);
    __builtin_memcpy(a + k * part_lanes, &s, sizeof s);
  }
}
// f of the lanes one by one: compilers make vectors of it where they can.
template <class R, class F, class T> FUSE_INLINE vec<R> by_lane(F f, const vec<T>& a) {
  alignas(64) T x[32];
  alignas(64) R r[32];
  to_array(a, x);
  for (int i = 0; i < 32; ++i) r[i] = f(x[i]);
  return from_array(r);
}
template <class R, class F, class T> FUSE_INLINE vec<R> by_lane(F f, const vec<T>& a, const vec<T>& b) {
  alignas(64) T x[32], y[32];
  alignas(64) R r[32];
  to_array(a, x), to_array(b, y);
  for (int i = 0; i < 32; ++i) r[i] = f(x[i], y[i]);
  return from_array(r);
}

// The same value in each lane. v - 0 keeps the sign of -0; v + 0 would make it +0.
template <class T> FUSE_INLINE vec<T> all(T v) {
  vec<T> r;
  FUSE_EACH_PART {
    if constexpr (__is_same(T, f16)) r.p[k] = u16p{} + v.bits;
    else if constexpr (__is_same(T, bf16)) r.p[k] = (f32p)(u32p{} + (static_cast<unsigned>(v.bits) << 16));
    else if constexpr (__is_same(T, bool)) r.p[k] = i32p{} - static_cast<int>(v);
    else r.p[k] = v - part_of<T>{};
  }
  return r;
}
template <class T> FUSE_INLINE T value_at(const vec<T>& v, int lane) {
  alignas(64) T x[32];
  to_array(v, x);
  return x[lane];
}
constexpr i32p lane_numbers() {
#if FUSE_VECTOR_BYTES == 64
  return i32p{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif FUSE_VECTOR_BYTES == 32
  return i32p{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return i32p{0, 1, 2, 3};
#endif
}
FUSE_INLINE i32p lane_numbers(int part) { return lane_numbers() + part * part_lanes; }

// Masks
FUSE_INLINE mask full(const vec<bool>& v) {
  mask m;
  FUSE_EACH_PART m.p[k] = v.p[k];
  return m;
}
FUSE_INLINE mask full(const mask& m) { return m; }
FUSE_INLINE mask full(prefix m) {
  mask r;
  FUSE_EACH_PART r.p[k] = lane_numbers(k) < m.n;
  return r;
}
template <class M> FUSE_INLINE vec<bool> as_value(const M& m) {
  const mask f = full(m);
  vec<bool> v;
  FUSE_EACH_PART v.p[k] = f.p[k];
  return v;
}
FUSE_INLINE vec<bool> as_value(bool b) { return all(b); }
FUSE_INLINE prefix as_mask(prefix m) { return m; }
FUSE_INLINE mask as_mask(const mask& m) { return m; }
FUSE_INLINE mask as_mask(const vec<bool>& v) { return full(v); }
FUSE_INLINE prefix operator&(prefix a, prefix b) { return {a.n < b.n ? a.n : b.n}; }
template <class A, class B> FUSE_INLINE mask both(const A& a, const B& b) {
  const mask x = full(a), y = full(b);
  mask r;
  FUSE_EACH_PART r.p[k] = x.p[k] & y.p[k];
  return r;
}
FUSE_INLINE mask operator&(const mask& a, const mask& b) { return both(a, b); }
FUSE_INLINE mask operator&(const mask& a, prefix b) { return both(a, b); }
FUSE_INLINE mask operator&(prefix a, const mask& b) { return both(a, b); }
FUSE_INLINE mask operator&(const mask& a, const vec<bool>& b) { return both(a, b); }
FUSE_INLINE mask operator&(prefix a, const vec<bool>& b) { return both(a, b); }
FUSE_INLINE bool any(prefix m) { return m.n > 0; }
FUSE_INLINE bool any(const mask& m) {
  i32p or_of = m.p[0];
  for (int k = 1; k < parts; ++k) or_of |= m.p[k];
  return part_any(or_of);
}
FUSE_INLINE bool every(prefix m) { return m.n >= 32; }
FUSE_INLINE bool every(const mask& m) {
  i32p none = ~m.p[0];
  for (int k = 1; k < parts; ++k) none |= ~m.p[k];
  return !part_any(none);
}
template <class T> FUSE_INLINE test_of<T> tests(i32p m) {
  if constexpr (sizeof(test_of<T>) == sizeof(i32p)) return m;
  else return part_as<test_of<T>>(m);
}
template <class P> FUSE_INLINE i32p lanes_where(P test) {
  if constexpr (sizeof(P) == sizeof(i32p)) return (i32p)test;
  else return part_as<i32p>(test);
}
template <class M, class T> FUSE_INLINE vec<T> select(const M& where, const vec<T>& a, const vec<T>& b) {
  const mask m = full(where);
  vec<T> r;
  FUSE_EACH_PART r.p[k] = choose(tests<T>(m.p[k]), a.p[k], b.p[k]);
  return r;
}
template <class T> FUSE_INLINE vec<T> select(bool where, const vec<T>& a, const vec<T>& b) { return where ? a : b; }
template <class T> FUSE_INLINE T select(bool where, T a, T b) { return where ? a : b; }

// Operators: lane by lane, with one value for all lanes on either side.
#define FUSE_OPERATOR(op)                                                                        \
  template <class T> FUSE_INLINE vec<T> operator op(const vec<T>& a, const vec<T>& b) {          \
    vec<T> r;                                                                                    \
    FUSE_EACH_PART r.p[k] = a.p[k] op b.p[k];                                                    \
    return r;                                                                                    \
  }                                                                                              \
  template <class T> FUSE_INLINE vec<T> operator op(const vec<T>& a, given<T> b) { return a op all<T>(b); } \
  template <class T> FUSE_INLINE vec<T> operator op(given<T> a, const vec<T>& b) { return all<T>(a) op b; }
FUSE_OPERATOR(+)
FUSE_OPERATOR(-)
FUSE_OPERATOR(*)
FUSE_OPERATOR(&)
FUSE_OPERATOR(|)
FUSE_OPERATOR(^)
#undef FUSE_OPERATOR
#define FUSE_COMPARISON(op)                                                                          \
  template <class T> FUSE_INLINE vec<bool> operator op(const vec<T>& a, const vec<T>& b) {           \
    vec<bool> r;                                                                                     \
    FUSE_EACH_PART {                                                                                 \
      if constexpr (__is_same(T, f16)) r.p[k] = part_from_f16(a.p[k]) op part_from_f16(b.p[k]);      \
      else r.p[k] = lanes_where(a.p[k] op b.p[k]);                                                   \
    }                                                                                                \
    return r;                                                                                        \
  }                                                                                                  \
  template <class T> FUSE_INLINE vec<bool> operator op(const vec<T>& a, given<T> b) { return a op all<T>(b); } \
  template <class T> FUSE_INLINE vec<bool> operator op(given<T> a, const vec<T>& b) { return all<T>(a) op b; }
FUSE_COMPARISON(==)
FUSE_COMPARISON(!=)
FUSE_COMPARISON(<)
FUSE_COMPARISON(<=)
FUSE_COMPARISON(>)
FUSE_COMPARISON(>=)
#undef FUSE_COMPARISON
FUSE_INLINE vec<bool> operator!(const vec<bool>& a) {
  vec<bool> r;
  FUSE_EACH_PART r.p[k] = ~a.p[k];
  return r;
}
FUSE_INLINE vec<bool> operator&&(const vec<bool>& a, const vec<bool>& b) { return a & b; }
FUSE_INLINE vec<bool> operator&&(const vec<bool>& a, bool b) { return a & all(b); }
FUSE_INLINE vec<bool> operator&&(bool a, const vec<bool>& b) { return all(a) & b; }
FUSE_INLINE vec<bool> operator||(const vec<bool>& a, const vec<bool>& b) { return a | b; }
FUSE_INLINE vec<bool> operator||(const vec<bool>& a, bool b) { return a | all(b); }
FUSE_INLINE vec<bool> operator||(bool a, const vec<bool>& b) { return all(a) | b; }
template <class T> FUSE_INLINE vec<T> operator~(const vec<T>& a) {
  vec<T> r;
  FUSE_EACH_PART r.p[k] = ~a.p[k];
  return r;
}
template <class T> FUSE_INLINE vec<T> operator-(const vec<T>& a) {
  vec<T> r;
  FUSE_EACH_PART r.p[k] = -a.p[k];
  return r;
}
// Kernels divide floats alone in this way; what indices do stands below.
FUSE_INLINE vec<float> operator/(const vec<float>& a, const vec<float>& b) {
  vec<float> r;
  FUSE_EACH_PART r.p[k] = a.p[k] / b.p[k];
  return r;
}
FUSE_INLINE vec<double> operator/(const vec<double>& a, const vec<double>& b) {
  vec<double> r;
  FUSE_EACH_PART r.p[k] = a.p[k] / b.p[k];
  return r;
}
FUSE_INLINE vec<float> operator/(float a, const vec<float>& b) { return all(a) / b; }
FUSE_INLINE vec<double> operator/(double a, const vec<double>& b) { return all(a) / b; }
FUSE_INLINE vec<float> operator/(const vec<float>& a, float b) { return a / all(b); }
FUSE_INLINE vec<double> operator/(const vec<double>& a, double b) { return a / all(b); }
)";

const std::string_view cpu_indices = R"(
// Indices. Most are base + lane: what they index lies side by side, and a bound makes a mask of the first lanes.
template <class I> FUSE_INLINE vec<I> lanes(run<I> r) {
  vec<I> v;
  FUSE_EACH_PART v.p[k] = part_as<part_of<I>>(lane_numbers(k)) + r.base;
  return v;
}
template <class I> FUSE_INLINE const vec<I>& lanes(const vec<I>& v) { return v; }
template <class I> FUSE_INLINE run<I> operator+(run<I> a, given<I> b) { return {a.base + b}; }
template <class I> FUSE_INLINE run<I> operator+(given<I> a, run<I> b) { return {a + b.base}; }
template <class I> FUSE_INLINE run<I> operator-(run<I> a, given<I> b) { return {a.base - b}; }
template <class I> FUSE_INLINE vec<I> operator-(given<I> a, run<I> b) { return a - lanes(b); }
template <class I> FUSE_INLINE vec<I> operator-(run<I> a) { return -lanes(a); }
template <class I> FUSE_INLINE vec<I> operator+(run<I> a, run<I> b) { return lanes(a) + lanes(b); }
template <class I> FUSE_INLINE vec<I> operator+(run<I> a, const vec<I>& b) { return lanes(a) + b; }
template <class I> FUSE_INLINE vec<I> operator+(const vec<I>& a, run<I> b) { return a + lanes(b); }
template <class I> FUSE_INLINE vec<I> operator-(run<I> a, const vec<I>& b) { return lanes(a) - b; }
template <class I> FUSE_INLINE vec<I> operator-(const vec<I>& a, run<I> b) { return a - lanes(b); }
template <class I> FUSE_INLINE vec<I> operator-(run<I> a, run<I> b) { return lanes(a) - lanes(b); }
template <class I> FUSE_INLINE vec<I> operator*(run<I> a, given<I> b) { return lanes(a) * b; }
template <class I> FUSE_INLINE vec<I> operator*(given<I> a, run<I> b) { return a * lanes(b); }
template <class I> FUSE_INLINE vec<I> operator*(run<I> a, run<I> b) { return lanes(a) * lanes(b); }
template <class I> FUSE_INLINE vec<I> operator*(run<I> a, const vec<I>& b) { return lanes(a) * b; }
template <class I> FUSE_INLINE vec<I> operator*(const vec<I>& a, run<I> b) { return a * lanes(b); }
template <class I> FUSE_INLINE prefix operator<(run<I> a, given<I> b) {
  const I n = b - a.base;
  return {static_cast<int>(n < 0 ? 0 : n > 32 ? 32 : n)};
}
template <class I> FUSE_INLINE vec<bool> operator<(run<I> a, const vec<I>& b) { return lanes(a) < b; }
template <class I> FUSE_INLINE vec<bool> operator<(const vec<I>& a, run<I> b) { return a < lanes(b); }
template <class I> FUSE_INLINE vec<bool> operator<(run<I> a, run<I> b) { return lanes(a) < lanes(b); }
template <class I> FUSE_INLINE vec<bool> operator<(given<I> a, run<I> b) { return a < lanes(b); }

// Quotients and remainders, of the floor of the quotient: divisors are above 0. Neighbours have the same quotient or
// the next one, unless the divisor is small.
template <class I> struct divided { vec<I> quotient, remainder; };
template <class I> FUSE_INLINE I floor_quotient(I a, I b) { return a / b - (a % b < 0); }
template <class I> __attribute__((noinline)) static divided<I> divide_each(vec<I> a, I b) {
  I x[32], q[32], r[32];
  to_array(a, x);
  for (int i = 0; i < 32; ++i) q[i] = floor_quotient(x[i], b), r[i] = x[i] - q[i] * b;
  return {from_array(q), from_array(r)};
}
template <class I> FUSE_INLINE divided<I> divide_index(run<I> a, I b) {
  if (b < 32) return divide_each(lanes(a), b);
  const I q = floor_quotient(a.base, b), r = a.base - q * b;
  divided<I> result;
  FUSE_EACH_PART {
    const part_of<I> sum = part_as<part_of<I>>(lane_numbers(k)) + r;
    const test_of<I> over = sum >= b;
    result.quotient.p[k] = q - over;
    result.remainder.p[k] = sum - (over & b);
  }
  return result;
}
template <class I> FUSE_INLINE bool are_run(const vec<I>& v, I first) {
  part_of<I> differ{};
  FUSE_EACH_PART differ |= v.p[k] ^ (part_as<part_of<I>>(lane_numbers(k)) + first);
  return !part_any(lanes_where(differ != 0));
}
template <class I> FUSE_INLINE bool are_same(const vec<I>& v, I first) {
  part_of<I> differ{};
  FUSE_EACH_PART differ |= v.p[k] ^ first;
  return !part_any(lanes_where(differ != 0));
}
template <class I> FUSE_INLINE divided<I> divide_index(const vec<I>& a, I b) {
  const I first = a.p[0][0];
  if (are_same(a, first)) {
    const I q = floor_quotient(first, b);
    return {all(q), all(static_cast<I>(first - q * b))};
  }
  if (are_run(a, first)) return divide_index(run<I>{first}, b);
  return divide_each(a, b);
}
template <class I> FUSE_INLINE divided<I> divide_index(const vec<I>& a, const vec<I>& b) {
  return {by_lane<I>(floor_quotient<I>, a, b), a - by_lane<I>(floor_quotient<I>, a, b) * b};
}
#define FUSE_INDEX_DIVISION(name, part)                                                                      \
  template <class I> FUSE_INLINE vec<I> name(run<I> a, given<I> b) { return divide_index<I>(a, b).part; }     \
  template <class I> FUSE_INLINE vec<I> name(const vec<I>& a, given<I> b) { return divide_index<I>(a, b).part; } \
  template <class I> FUSE_INLINE vec<I> name(const vec<I>& a, const vec<I>& b) { return divide_index<I>(a, b).part; }
FUSE_INDEX_DIVISION(operator/, quotient)
FUSE_INDEX_DIVISION(operator%, remainder)
#undef FUSE_INDEX_DIVISION
// The divisor has a type of its own: otherwise the functions of one value would fit a divisor of 32 bits better.
#define FUSE_FLOOR_DIVISION(name, op)                                                                 \
  template <class I, class B> FUSE_INLINE vec<I> name(run<I> a, const B& b) { return a op b; }         \
  template <class I, class B> FUSE_INLINE vec<I> name(const vec<I>& a, const B& b) { return a op b; }
FUSE_FLOOR_DIVISION(floor_div, /)
FUSE_FLOOR_DIVISION(floor_mod, %)
#undef FUSE_FLOOR_DIVISION
)";

const std::string_view cpu_memory = R"(
// Memory. Lanes that the mask leaves out are 0 when they are loaded, and touch no memory.
template <class T, class I> FUSE_INLINE T load(const T* p, I i) { return p[i]; }
template <class T, class I> FUSE_INLINE vec<T> load(const T* p, run<I> i) { return from_array(p + i.base); }
template <class T, class I> FUSE_INLINE vec<T> load(const T* p, run<I> i, prefix m) {
  if (__builtin_expect(m.n == 32, 1)) return from_array(p + i.base);
  alignas(64) T x[32] = {};
  if (m.n > 0) __builtin_memcpy(x, p + i.base, static_cast<unsigned long>(m.n) * sizeof(T));
  return from_array(x);
}
// What goes element by element is called: a kernel may have it a hundred times, as a concat of many operands does.
template <class T> __attribute__((noinline)) static vec<T> load_some(const T* p, const mask& m) {
  if (!any(m)) return all(T{});
  alignas(64) T x[32];
  alignas(64) bool where[32];
  to_array(as_value(m), where);
  for (int k = 0; k < 32; ++k) x[k] = where[k] ? p[k] : T{};
  return from_array(x);
}
template <class T, class I> FUSE_INLINE vec<T> load(const T* p, run<I> i, const mask& m) {
  if (every(m)) return from_array(p + i.base);
  return load_some(p + i.base, m);
}
template <class T, class I> __attribute__((noinline)) static vec<T> gather(const T* p, vec<I> i) {
  I at[32];
  T x[32];
  to_array(i, at);
  for (int k = 0; k < 32; ++k) x[k] = p[at[k]];
  return from_array(x);
}
template <class T, class I> FUSE_INLINE vec<T> load(const T* p, const vec<I>& i) {
  const I first = i.p[0][0];
  if (are_run(i, first)) return from_array(p + first);
  if (are_same(i, first)) return all(p[first]);
  return gather(p, i);
}
template <class T, class I> __attribute__((noinline)) static vec<T> gather_some(const T* p, const vec<I>& i, const mask& m) {
  if (!any(m)) return all(T{});
  I at[32];
  T x[32];
  alignas(64) bool where[32];
  to_array(i, at), to_array(as_value(m), where);
  for (int k = 0; k < 32; ++k) x[k] = where[k] ? p[at[k]] : T{};
  return from_array(x);
}
template <class T, class I, class M> FUSE_INLINE vec<T> load(const T* p, const vec<I>& i, const M& m) {
  if (every(m)) return load(p, i);
  return gather_some(p, i, full(m));
}

// Of rows that lie far apart, the processor does not foresee that the next lanes are read next.
template <class T, class I, class... M>
FUSE_INLINE vec<T> load_and_ask_for_next(const T* p, run<I> i, const M&... m) {
  for (unsigned long k = 0; k < 32 * sizeof(T); k += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(p + i.base) + 32 * sizeof(T) + k, 0, 2);
  return load(p, i, m...);
}
template <class T, class I, class... M>
FUSE_INLINE vec<T> load_and_ask_for_next(const T* p, const vec<I>& i, const M&... m) { return load(p, i, m...); }

// Asks for what the next block loads, into the first or the second cache. The address may lie outside of the buffer.
template <int cache, class T, class I> FUSE_INLINE void prefetch(const T* p, run<I> i) {
  for (unsigned long k = 0; k < 32 * sizeof(T); k += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(p + i.base) + k, 0, 4 - cache);
}
template <int cache, class T, class I> FUSE_INLINE void prefetch(const T* p, I i) { __builtin_prefetch(p + i, 0, 4 - cache); }
template <int cache, class T, class I> FUSE_INLINE void prefetch(const T*, const vec<I>&) {}

template <class T, class I> FUSE_INLINE void store(T* p, I i, given<T> v) { p[i] = v; }
template <class T, class I> FUSE_INLINE void store(T* p, run<I> i, const vec<T>& v) { to_array(v, p + i.base); }
template <class T, class I> FUSE_INLINE void store(T* p, run<I> i, const vec<T>& v, prefix m) {
  if (__builtin_expect(m.n == 32, 1)) return to_array(v, p + i.base);
  alignas(64) T x[32];
  to_array(v, x);
  if (m.n > 0) __builtin_memcpy(p + i.base, x, static_cast<unsigned long>(m.n) * sizeof(T));
}
template <class T, class I>
__attribute__((noinline)) static void scatter(T* p, const vec<I>& i, const vec<T>& v, const mask& m) {
  I at[32];
  T x[32];
  alignas(64) bool where[32];
  to_array(i, at), to_array(v, x), to_array(as_value(m), where);
  for (int k = 0; k < 32; ++k) {
    if (where[k]) p[at[k]] = x[k];
  }
}
template <class T, class I> FUSE_INLINE void store(T* p, run<I> i, const vec<T>& v, const mask& m) {
  if (every(m)) return to_array(v, p + i.base);
  scatter(p, lanes(i), v, m);
}
template <class T, class I> FUSE_INLINE void store(T* p, const vec<I>& i, const vec<T>& v) {
  const I first = i.p[0][0];
  if (are_run(i, first)) return to_array(v, p + first);
  scatter(p, i, v, full(prefix{32}));
}
template <class T, class I, class M> FUSE_INLINE void store(T* p, const vec<I>& i, const vec<T>& v, const M& m) {
  if (every(m)) return store(p, i, v);
  scatter(p, i, v, full(m));
}
// Results that the caches are too small for: whole lines go to memory past them, where a store would read the line first.
typedef float f32x4 __attribute__((vector_size(16)));
#ifdef __clang__
#define FUSE_PAST_CACHES(P, builtin) \
  FUSE_INLINE void past_caches(char* to, P v) { __builtin_nontemporal_store(v, reinterpret_cast<P*>(to)); }
#elif defined(__SSE__)
#define FUSE_PAST_CACHES(P, builtin) \
  FUSE_INLINE void past_caches(char* to, P v) { builtin(reinterpret_cast<float*>(to), v); }
#else
#define FUSE_PAST_CACHES(P, builtin) \
  FUSE_INLINE void past_caches(char* to, P v) { __builtin_memcpy(to, &v, sizeof v); }
#endif
FUSE_PAST_CACHES(f32x4, __builtin_ia32_movntps)
#if FUSE_VECTOR_BYTES >= 32
typedef float f32x8 __attribute__((vector_size(32)));
FUSE_PAST_CACHES(f32x8, __builtin_ia32_movntps256)
#endif
#if FUSE_VECTOR_BYTES == 64
FUSE_PAST_CACHES(f32p, __builtin_ia32_movntps512)
#endif
#undef FUSE_PAST_CACHES
template <class P, class S> FUSE_INLINE void past_caches_by(char* to, const S& from) {
  for (unsigned long i = 0; i < sizeof(S); i += sizeof(P))
    past_caches(to + i, part_from<P>(reinterpret_cast<const char*>(&from) + i));
}
template <class S> FUSE_INLINE void copy_past_caches(char* to, const S& from) {
#if FUSE_VECTOR_BYTES == 64
  if constexpr (sizeof(S) == 32) return past_caches_by<f32x8>(to, from);
#endif
  if constexpr (sizeof(S) >= FUSE_VECTOR_BYTES) past_caches_by<f32p>(to, from);
  else if constexpr (sizeof(S) == 16) past_caches(to, part_from<f32x4>(&from));
  else __builtin_memcpy(to, &from, sizeof(S));
}
template <class T, class I> FUSE_INLINE void store_result(bool stream, T* p, run<I> i, const vec<T>& v) {
  T* const to = p + i.base;
  // Less than a line would be written in two ways: half of it past the caches, and half of it by the next lanes.
  if (32 * sizeof(T) < 64 || !stream || reinterpret_cast<unsigned long>(to) % 64 != 0) return to_array(v, to);
  FUSE_EACH_PART {
    const stored_of<T> s = to_store<T>(v.p[k]);
    copy_past_caches(reinterpret_cast<char*>(to + k * part_lanes), s);
  }
}
template <class T, class I> FUSE_INLINE void store_result(bool stream, T* p, run<I> i, const vec<T>& v, prefix m) {
  if (__builtin_expect(m.n == 32, 1)) return store_result(stream, p, i, v);
  store(p, i, v, m);
}
template <class T, class I, class... M>
FUSE_INLINE void store_result(bool, T* p, const I& i, const vec<T>& v, const M&... m) {
  store(p, i, v, m...);
}
// All lanes that the mask has store to one element. They have the same value, but where nothing says whose counts.
template <class T, class I> FUSE_INLINE void store_one(T* p, I i, const vec<T>& v) { p[i] = value_at(v, 0); }
template <class T, class I> FUSE_INLINE void store_one(T* p, I i, const vec<T>& v, prefix m) {
  if (m.n > 0) p[i] = value_at(v, 0);
}
template <class T, class I> FUSE_INLINE void store_one(T* p, I i, const vec<T>& v, const mask& m) {
  alignas(64) bool where[32];
  to_array(as_value(m), where);
  for (int k = 0; k < 32; ++k) {
    if (where[k]) return static_cast<void>(p[i] = value_at(v, k));
  }
}

// A tile is 32 rows of 32 elements. Blocks of it that fit the registers change places with the blocks
// across the diagonal; a block is transposed in steps, which exchange halves, quarters and so on of two rows.
template <class U> struct block_of { using row = part_of<U>; };
template <> struct block_of<double> { typedef double row __attribute__((vector_size(FUSE_VECTOR_BYTES))); };
#ifdef __clang__
template <class T, T... i> struct numbers {};
template <int d, class R, int... i> FUSE_INLINE void exchange(R& a, R& b, const numbers<int, i...>&) {
  constexpr int n = sizeof...(i);
  const R first = __builtin_shufflevector(a, b, (i & d ? n + (i ^ d) : i)...);
  b = __builtin_shufflevector(a, b, (i & d ? n + i : i ^ d)...);
  a = first;
}
#endif
template <int d, class R> FUSE_INLINE void exchange(R& a, R& b) {
  constexpr int n = sizeof(R) / sizeof(R{}[0]);
#ifdef __clang__
  exchange<d>(a, b, __make_integer_seq<numbers, int, n>{});
#else
  typedef decltype(R{} == R{}) I;
  I of_first, of_second;
  for (int i = 0; i < n; ++i) of_first[i] = i & d ? n + (i ^ d) : i, of_second[i] = i & d ? n + i : i ^ d;
  const R first = __builtin_shuffle(a, b, of_first);
  b = __builtin_shuffle(a, b, of_second);
  a = first;
#endif
}
template <int d, class R, int n> FUSE_INLINE void transpose_by(R (&rows)[n]) {
  if constexpr (d > 0) {
    _Pragma("GCC unroll 16") for (int i = 0; i < n; ++i) {
      if ((i & d) == 0) exchange<d>(rows[i], rows[i + d]);
    }
    transpose_by<d / 2>(rows);
  }
}
template <class R, int n, class U> FUSE_INLINE void take_transposed(R (&rows)[n], const U* from) {
  _Pragma("GCC unroll 16") for (int i = 0; i < n; ++i) rows[i] = part_from<R>(from + 32 * i);
  transpose_by<n / 2>(rows);
}
template <class R, int n, class U> FUSE_INLINE void put(const R (&rows)[n], U* to) {
  _Pragma("GCC unroll 16") for (int i = 0; i < n; ++i) __builtin_memcpy(to + 32 * i, &rows[i], sizeof(R));
}
template <class U> __attribute__((noinline)) static void transpose_blocks(U* tile) {
  typedef typename block_of<U>::row R;
  constexpr int n = sizeof(R) / sizeof(U);
  R block[n], across[n];
  for (int i = 0; i < 32; i += n) {
    take_transposed(block, tile + 33 * i);
    put(block, tile + 33 * i);
    for (int j = i + n; j < 32; j += n) {
      take_transposed(block, tile + 32 * i + j);
      take_transposed(across, tile + 32 * j + i);
      put(across, tile + 32 * i + j);
      put(block, tile + 32 * j + i);
    }
  }
}
template <class T> FUSE_INLINE void transpose_tile(T* tile) {
  if constexpr (sizeof(T) == 1) transpose_blocks(reinterpret_cast<signed char*>(tile));
  else if constexpr (sizeof(T) == 2) transpose_blocks(reinterpret_cast<f16*>(tile));
  else if constexpr (sizeof(T) == 4) transpose_blocks(reinterpret_cast<float*>(tile));
  else transpose_blocks(reinterpret_cast<double*>(tile));
}
)";

const std::string_view cpu_exchanges = R"(
// Exchanges between lanes: the same trees as a GPU's.
template <int d, class T> FUSE_INLINE vec<T> shuffle_xor(const vec<T>& v) {
  vec<T> r;
  if constexpr (d >= part_lanes) {
    FUSE_EACH_PART r.p[k] = v.p[k ^ (d / part_lanes)];
  } else {
    FUSE_EACH_PART r.p[k] = exchanged<d>(v.p[k]);
  }
  return r;
}
// Parts that have exchanged hold the same result, which is computed once.
template <int d, class T, class F> FUSE_INLINE vec<T> combined_at(const vec<T>& v, F combine) {
  vec<T> r = combine(v, shuffle_xor<d>(v));
  if constexpr (d >= part_lanes) {
    FUSE_EACH_PART r.p[k] = r.p[k & ~(d / part_lanes)];
  }
  return r;
}
#define FUSE_BUTTERFLY(name, combined)                                \
  template <class T> FUSE_INLINE vec<T> name(vec<T> v) {              \
    const auto step = [](const vec<T>& a, const vec<T>& b) { return combined; }; \
    v = combined_at<16>(v, step);                                     \
    v = combined_at<8>(v, step);                                      \
    v = combined_at<4>(v, step);                                      \
    v = combined_at<2>(v, step);                                      \
    return combined_at<1>(v, step);                                   \
  }
FUSE_BUTTERFLY(warp_sum, a + b)
FUSE_BUTTERFLY(warp_prod, a * b)
FUSE_BUTTERFLY(warp_max, maximum(a, b))
FUSE_BUTTERFLY(warp_min, minimum(a, b))
#undef FUSE_BUTTERFLY
// carry plus the values of the lanes up to each, by doubling distances; carry becomes the last lane's.
template <class T> FUSE_INLINE vec<T> warp_scan_sum(const vec<T>& v, vec<T>& carry) {
  alignas(64) T x[32], below[32];
  to_array(v, x);
  for (int d = 1; d < 32; d <<= 1) {
    __builtin_memcpy(below, x, sizeof x);
    for (int i = d; i < 32; ++i) x[i] = below[i - d] + below[i];
  }
  const vec<T> sums = carry + from_array(x);
  carry = all(value_at(sums, 31));
  return sums;
}
)";

}  // namespace fuse::codegen
