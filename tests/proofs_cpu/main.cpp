// Prints a C++ program that computes the vector functions of the CPU device
// (src/codegen_cpu/prelude/vector_math.cpp) of every f32, and their errors. The text of the functions is the
// one that kernels get. SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <string_view>

#include "codegen_cpu/prelude/vector_math.hpp"
#include "codegen_cuda/primitives/primitives.hpp"

namespace {

constexpr std::string_view before = R"(#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#if defined(__AVX512F__)
#define FUSE_VECTOR_BYTES 64
#define LIBM(name) _ZGVeN8v_##name
#elif defined(__AVX2__)
#define FUSE_VECTOR_BYTES 32
#define LIBM(name) _ZGVdN4v_##name
#else
#define FUSE_VECTOR_BYTES 16
#define LIBM(name) _ZGVbN2v_##name
#endif
constexpr int part_lanes = FUSE_VECTOR_BYTES / 4;
typedef float f32p __attribute__((vector_size(FUSE_VECTOR_BYTES)));
typedef int i32p __attribute__((vector_size(FUSE_VECTOR_BYTES)));
typedef unsigned u32p __attribute__((vector_size(FUSE_VECTOR_BYTES)));
)";

constexpr std::string_view after = R"(
// The vector functions of libm in double err by 4 units of a double at most; scalar ones would take hours.
// Every 1009th value is compared with the scalar function in long double.
#define REFERENCE(name)                                                        \
  extern "C" f64_part LIBM(name)(f64_part);                                    \
  struct of_##name {                                                           \
    static f64_part vector(f64_part x) { return LIBM(name)(x); }               \
    static long double scalar(long double x) { return std::name(x); }          \
  };
REFERENCE(exp) REFERENCE(exp2) REFERENCE(expm1) REFERENCE(log) REFERENCE(log2) REFERENCE(log1p)
REFERENCE(sin) REFERENCE(cos) REFERENCE(tanh) REFERENCE(erf)
#define EXACT(name, expression)                                                \
  struct of_##name {                                                           \
    static f64_part vector(f64_part x) {                                       \
      for (int i = 0; i < part_lanes / 2; ++i) x[i] = one(x[i]);               \
      return x;                                                                \
    }                                                                          \
    static double one(double x) { return expression; }                         \
    static long double scalar(long double x) { return expression; }            \
  };
EXACT(sqrt, std::sqrt(x)) EXACT(rsqrt, 1 / std::sqrt(x)) EXACT(floor, std::floor(x)) EXACT(ceil, std::ceil(x))
EXACT(rint, std::rint(x))

using u64 = unsigned long long;
constexpr u64 all = 1ull << 32;
constexpr int count = 4096;
struct Values {
  alignas(64) float x[count], y[count], result[count];
  alignas(64) double reference[count], error[count];
};
static Values values;

struct Found {
  double worst = 0;
  u64 tested = 0, not_a_number = 0, signs = 0, beyond = 0, doubtful = 0, dependent = 0;
  float x = 0, y = 0;
};

static u64 bits_of_double(double v) { return __builtin_bit_cast(u64, v); }
static double double_of_bits(u64 v) { return __builtin_bit_cast(double, v); }

/// Compares results and references. Infinity counts as 2^128. Below 2^-126 the unit is that of subnormals.
static void compare(Found& found) {
  u64 not_a_number = 0, signs = 0, beyond = 0, largest = 0;
  for (int i = 0; i < count; ++i) {
    double got = values.result[i], wanted = values.reference[i];
    const u64 got_none = got != got, wanted_none = wanted != wanted;
    not_a_number += got_none ^ wanted_none;
    signs += (bits_of_double(got) ^ bits_of_double(wanted)) >> 63 & ((got_none | wanted_none) ^ 1);
    beyond += u64{std::fabs(got) > 1} & u64{std::fabs(wanted) <= 1};
    wanted = wanted > 0x1p128 ? 0x1p128 : wanted;
    wanted = wanted < -0x1p128 ? -0x1p128 : wanted;
    got = got > 0x1p128 ? 0x1p128 : got;
    got = got < -0x1p128 ? -0x1p128 : got;
    double magnitude = std::fabs(wanted);
    magnitude = magnitude < 0x1p-126 ? 0x1p-126 : magnitude;
    const u64 unit = (bits_of_double(magnitude) & 0x7ff0000000000000) - (23ull << 52);
    const double error = std::fabs(got - wanted) / double_of_bits(unit);
    const u64 bits = bits_of_double(error) & ((got_none | wanted_none) - 1);
    values.error[i] = double_of_bits(bits);
    largest = bits > largest ? bits : largest;  // doubles that are not negative have the order of their bits
  }
  const double worst = double_of_bits(largest);
  found.tested += count;
  found.not_a_number += not_a_number;
  found.signs += signs;
  found.beyond += beyond;
  if (worst <= found.worst) return;
  for (int i = 0; i < count; ++i) {
    if (values.error[i] == worst) found.x = values.x[i], found.y = values.y[i];
  }
  found.worst = worst;
}

static bool failed = false;
static std::string only;

enum class Kind { one_value, in_unit_interval, two_values };
static void show(const char* name, double allowed, const Found& found, Kind kind) {
  std::printf("%s: %llu tested, at most %.4f ulp (%g allowed), at %a", name, found.tested, found.worst,
              allowed, found.x);
  if (kind == Kind::two_values) std::printf(" and %a", found.y);
  std::printf("; wrong NaN: %llu, wrong signs: %llu", found.not_a_number, found.signs);
  if (kind == Kind::in_unit_interval) std::printf(", beyond 1: %llu", found.beyond);
  if (kind != Kind::two_values)
    std::printf(", lanes that depend on others: %llu, doubtful references: %llu", found.dependent,
                found.doubtful);
  std::printf("\n");
  std::fflush(stdout);
  failed |= found.worst > (allowed == 0 ? 0.5 : allowed);
  failed |= kind == Kind::in_unit_interval && found.beyond != 0;
  failed |= found.not_a_number != 0 || found.signs != 0 || found.doubtful != 0 || found.dependent != 0;
}

static u64 state;
static u64 next() {  // splitmix64
  u64 z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
static float special() {
  static const float list[] = {
      0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 3.0f, -3.0f, 0.5f, -0.5f, INFINITY, -INFINITY, NAN,
      0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f, 0x1p24f,
      0x1.fffffep23f, 0x1.000002p0f, 0x1.fffffep-1f, -0x1.fffffep-1f};
  return list[next() % (sizeof list / sizeof *list)];
}
static float any_float() { return float_of_bits(static_cast<unsigned>(next())); }
static float of_size(int lowest, int exponents) {
  const u64 r = next();
  return float_of_bits(static_cast<unsigned>(r >> 63) << 31 | (lowest + 127 + (r >> 32) % exponents) << 23 |
                       (static_cast<unsigned>(r) & 0x7fffff));
}
static void random_pair(u64 kind, float& x, float& y) {
  switch (kind) {
    case 0: x = special(), y = special(); break;
    case 1: x = special(), y = any_float(); break;
    case 2: x = any_float(), y = special(); break;
    case 3: x = any_float(), y = any_float(); break;
    case 4: x = of_size(-2, 4), y = of_size(-2, 9); break;
    case 5: {  // pow of these is between 2^-160 and 2^160
      x = std::fabs(any_float());
      y = 160 * (static_cast<float>(next() >> 40) * 0x1p-23f - 1) / std::log2(x);
      break;
    }
    case 6: x = any_float(), y = std::rint(of_size(0, 6)); break;
    case 7: x = of_size(-40, 80), y = of_size(-40, 80); break;
    default: x = std::fabs(of_size(-40, 80)), y = of_size(-6, 10); break;
  }
}
/// How many lanes of random parts have another result than in a part of equal lanes.
template <class Function>
u64 dependent_lanes(Function function) {
  u64 dependent = 0;
  state = 27;
  for (int k = 0; k < 100000; ++k) {
    f32p x;
    for (int i = 0; i < part_lanes; ++i) {
      float first, second;
      random_pair(next() % 9, first, second);
      x[i] = first;
    }
    const f32p together = function(x);
    for (int i = 0; i < part_lanes; ++i) {
      const float alone = function(x[i] - f32p{})[0], beside = together[i];
      dependent += bits_of(alone) != bits_of(beside) && !(alone != alone && beside != beside);
    }
  }
  return dependent;
}

template <class Reference, class Function>
void prove(const char* name, double allowed, u64 step, Function function, Kind kind = Kind::one_value) {
  if (!only.empty() && only != name) return;
  Found found;
  const auto check = [&](u64 turn) {
    for (int i = 0; i < count; i += part_lanes) {
      f32p x;
      std::memcpy(&x, values.x + i, sizeof x);
      x = function(x);
      std::memcpy(values.result + i, &x, sizeof x);
    }
    for (int i = 0; i < count; i += part_lanes / 2) {
      f64_part x;
      for (int k = 0; k < part_lanes / 2; ++k) x[k] = values.x[i + k];
      x = Reference::vector(x);
      std::memcpy(values.reference + i, &x, sizeof x);
    }
    for (int i = static_cast<int>(turn % 1009); i < count; i += 1009) {
      const double careful = static_cast<double>(Reference::scalar(values.x[i])), quick = values.reference[i];
      const double tolerance = std::fabs(careful) * 0x1p-48 + 0x1p-1000;
      found.doubtful += !(std::fabs(careful - quick) <= tolerance || careful == quick ||
                          (careful != careful && quick != quick));
    }
    compare(found);
  };
  for (u64 first = 0; first < all; first += count * step) {
    for (int i = 0; i < count; ++i) values.x[i] = float_of_bits(static_cast<unsigned>(first + i * step));
    check(first / count / step);
  }
  if (step != 1) {
    for (float& x : values.x) x = special();
    check(0);
  }
  found.dependent = dependent_lanes(function);
  show(name, allowed, found, kind);
}

/// Pairs in both orders. Lanes of a part are of one kind in half of the cases.
template <class Function, class Reference>
void sample(const char* name, double allowed, u64 pairs, Function function, Reference reference) {
  if (!only.empty() && only != name) return;
  Found found;
  state = 27;
  while (found.tested < pairs) {
    const u64 part = found.tested / count;
    u64 kind = 0;
    for (int i = 0; i < count; ++i) {
      if (part % 4 < 2 || i % 64 == 0) kind = next() % 9;
      random_pair(kind, values.x[i], values.y[i]);
      if (part % 2) std::swap(values.x[i], values.y[i]);
      values.reference[i] = reference(static_cast<double>(values.x[i]), static_cast<double>(values.y[i]));
    }
    for (int i = 0; i < count; i += part_lanes) {
      f32p x, y;
      std::memcpy(&x, values.x + i, sizeof x);
      std::memcpy(&y, values.y + i, sizeof y);
      x = function(x, y);
      std::memcpy(values.result + i, &x, sizeof x);
    }
    compare(found);
  }
  show(name, allowed, found, Kind::two_values);
}

template <class Half, class To, class From, class ScalarTo, class ScalarFrom>
void conversions(const char* name, u64 step, To to, From from, ScalarTo scalar_to, ScalarFrom scalar_from) {
  if (!only.empty() && only != name) return;
  u64 tested = 0, wrong = 0;
  unsigned first_wrong = 0;
  for (u64 first = 0; first < all; first += part_lanes * step) {
    f32p x;
    for (int i = 0; i < part_lanes; ++i) x[i] = float_of_bits(static_cast<unsigned>(first + i * step));
    const u16p half = to(x);
    for (int i = 0; i < part_lanes; ++i, ++tested) {
      const unsigned wanted = x[i] != x[i] ? 0x7fff : scalar_to(static_cast<float>(x[i])).bits;
      if (half[i] != wanted && wrong++ == 0) first_wrong = bits_of(static_cast<float>(x[i]));
    }
  }
  for (unsigned first = 0; first < 65536; first += part_lanes) {
    u16p half;
    for (int i = 0; i < part_lanes; ++i) half[i] = static_cast<unsigned short>(first + i);
    const f32p x = from(half);
    for (int i = 0; i < part_lanes; ++i, ++tested) {
      const float wanted = scalar_from(Half{half[i]});
      const float got = x[i];
      const bool right = bits_of(got) == bits_of(wanted) || (got != got && wanted != wanted);
      if (!right && wrong++ == 0) first_wrong = half[i];
    }
  }
  std::printf("%s: %llu tested, wrong: %llu", name, tested, wrong);
  std::printf(wrong ? " (first: %#x)\n" : "\n", first_wrong);
  std::fflush(stdout);
  failed |= wrong != 0;
}

static void random_numbers() {
  if (!only.empty() && only != "random") return;
  u64 tested = 0, wrong = 0;
  state = 27;
  for (int draw = 0; draw < 200000; ++draw) {
    const long long seed = static_cast<long long>(next()), offset = static_cast<long long>(next());
    const long long stream = static_cast<long long>(next());
    const long long first = static_cast<long long>(next() >> (2 + next() % 60));
    const f32p x = part_random(seed, offset, stream, first);
    for (int i = 0; i < part_lanes; ++i, ++tested)
      wrong += bits_of(float{x[i]}) != bits_of(random_uniform_f32(seed, offset, stream, first + i));
  }
  std::printf("random: %llu tested, wrong: %llu\n", tested, wrong);
  failed |= wrong != 0;
}

template <class Function>
void time_of(const char* name, float lowest, float highest, Function function) {
  constexpr int elements = 2048;
  for (int i = 0; i < elements; ++i)
    values.x[i] = lowest + (highest - lowest) * static_cast<float>(i * 37 % elements) / elements;
  double best = 1e9;
  for (int repeat = 0; repeat < 30; ++repeat) {
    timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (int k = 0; k < 200; ++k) {
      for (int i = 0; i < elements; i += part_lanes) {
        f32p x;
        std::memcpy(&x, values.x + i, sizeof x);
        x = function(x, i);
        std::memcpy(values.result + i, &x, sizeof x);
      }
      asm volatile("" : : : "memory");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    const double time = static_cast<double>(end.tv_sec - start.tv_sec) * 1e9 +
                        static_cast<double>(end.tv_nsec - start.tv_nsec);
    best = time < best ? time : best;
  }
  std::printf("%s: %.2f\n", name, 200.0 * elements / best);
}

static void speed() {
  std::printf("10^9 elements per second, one thread, %d values:\n", 2048);
#define TIME(name, lowest, highest) \
  time_of(#name, lowest, highest, [](f32p x, int) { return part_##name(x); });
  TIME(exp, -10, 10) TIME(exp2, -10, 10) TIME(expm1, -3, 3) TIME(log, 0.01f, 10) TIME(log2, 0.01f, 10)
  TIME(log1p, -0.9f, 10)
  TIME(sin, -10, 10) TIME(cos, -10, 10) TIME(tanh, -5, 5) TIME(erf, -3, 3)
  TIME(sqrt, 0, 10) TIME(rsqrt, 0.1f, 10) TIME(floor, -10, 10) TIME(ceil, -10, 10) TIME(rint, -10, 10)
  const auto second = [](int i) { f32p y; std::memcpy(&y, values.y + i, sizeof y); return y; };
  for (int i = 0; i < count; ++i) values.y[i] = 2.5f + static_cast<float>(i % 7);
  time_of("pow", 0.01f, 10, [&](f32p x, int i) { return part_pow(x, second(i)); });
  time_of("pow, negative too", -10, 10, [&](f32p x, int i) { return part_pow(x, second(i)); });
  time_of("atan2", -10, 10, [&](f32p x, int i) { return part_atan2(x, second(i)); });
  time_of("fmod", -10, 10, [&](f32p x, int i) { return part_fmod(x, second(i)); });
  time_of("to f16 and back", -10, 10, [](f32p x, int) { return part_from_f16(part_to_f16(x)); });
  time_of("to bf16 and back", -10, 10, [](f32p x, int) { return part_from_bf16(part_to_bf16(x)); });
  time_of("random", 0, 1, [](f32p, int i) { return part_random(1, 2, 3, i); });
}

int main(int words_count, char** words) {
  if (words_count > 1 && std::strcmp(words[1], "speed") == 0) return speed(), 0;
  const u64 step = words_count > 1 ? std::strtoull(words[1], nullptr, 10) : 1;
  if (words_count > 2) only = words[2];
  std::printf("parts of %d bytes, step %llu\n", FUSE_VECTOR_BYTES, step);
#define PROVE(name, allowed, ...) \
  prove<of_##name>(#name, allowed, step, [](f32p x) { return part_##name(x); } __VA_OPT__(,) __VA_ARGS__);
  PROVE(exp, 2) PROVE(exp2, 2) PROVE(expm1, 2) PROVE(log, 2) PROVE(log2, 2) PROVE(log1p, 2)
  PROVE(sin, 2, Kind::in_unit_interval) PROVE(cos, 2, Kind::in_unit_interval)
  PROVE(tanh, 3, Kind::in_unit_interval) PROVE(erf, 3, Kind::in_unit_interval)
  PROVE(sqrt, 0) PROVE(rsqrt, 2) PROVE(floor, 0) PROVE(ceil, 0) PROVE(rint, 0)
  const u64 pairs = 400'000'000 / step;
  sample("pow", 8, pairs, [](f32p x, f32p y) { return part_pow(x, y); },
         [](double x, double y) { return std::pow(x, y); });
  sample("atan2", 3, pairs, [](f32p x, f32p y) { return part_atan2(x, y); },
         [](double x, double y) { return std::atan2(x, y); });
  sample("fmod", 0, pairs / 8, [](f32p x, f32p y) { return part_fmod(x, y); },
         [](double x, double y) { return std::fmod(x, y); });
  conversions<f16>("f16", step, part_to_f16, part_from_f16, [](float x) { return to_f16(x); },
                   [](f16 h) { return to_f32(h); });
  conversions<bf16>("bf16", step, part_to_bf16, part_from_bf16, [](float x) { return to_bf16(x); },
                    [](bf16 h) { return to_f32(h); });
  random_numbers();
  return failed;
}
)";

}  // namespace

int main() {
  std::string text(before);
  text += fuse::codegen::cpu_math;
  for (const char* name : {"f16", "bf16", "to_f32", "to_f64", "to_odd", "to_f16", "to_bf16", "random_words",
                           "random_values", "random_uniform_f32"}) {
    text += fuse::codegen::find_primitive(name)->host;
  }
  text += after;
  std::fputs(text.c_str(), stdout);
  return 0;
}
