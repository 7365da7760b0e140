// Kernels, and loads and stores of every kind of memory.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> memory_primitives() {
  return {
      {.name = "kernel",
       .cuda = R"(#define FUSE_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
)",
       .host = R"(#define FUSE_KERNEL(...) inline __attribute__((always_inline)) void
)"},
      // Stands after FUSE_KERNEL(...): the size is fixed when the text is compiled, so that a launch need not
      // name it.
      {.name = "cluster_size",
       .cuda = R"(#define FUSE_CLUSTER(n) __cluster_dims__(n, 1, 1)
)",
       .host = R"(#define FUSE_CLUSTER(n)
)"},
      {.name = "f16",
       .cuda = "struct f16 { unsigned short bits; };\n",
       .host = "struct f16 { unsigned short bits; };\n"},
      {.name = "bf16",
       .cuda = "struct bf16 { unsigned short bits; };\n",
       .host = "struct bf16 { unsigned short bits; };\n"},
      // Where blocks wait for each other they read what others wrote, which a restrict pointer's loads may
      // miss: compilers keep the value that was read before the barrier.
      {.name = "global",
       .cuda = R"(template <class T>
using global = T* __restrict__;
)",
       .host = R"(template <class T> struct global_of { using type = T*; };
template <class T> struct global_of<const T> { using type = const T* __restrict__; };
template <class T> using global = typename global_of<T>::type;
)",
       .checked_host = R"(template <class T> struct bare { using type = T; };
template <class T> struct bare<const T> { using type = T; };
template <class T> struct global {
  T* base;
  int object;
  operator global<const T>() const { return {base, object}; }
};
)",
       .cuda_across_blocks = R"(template <class T> struct global_of { using type = T*; };
template <class T> struct global_of<const T> { using type = const T* __restrict__; };
template <class T>
using global = typename global_of<T>::type;
)"},
      // Compilers move a load from a restrict pointer to where its value is needed, across barriers.
      {.name = "ordered_global",
       .cuda = R"(template <class T>
using ordered_global = T*;
)",
       .host = R"(template <class T> using ordered_global = T*;
)",
       .checked_host = R"(template <class T> using ordered_global = global<T>;
)",
       .needs = {"global"}},
      {.name = "load",
       .cuda = R"(template <class T, class I>
__device__ inline T load(const T* p, I i) { return p[i]; }
)",
       .host = R"(template <class T, class I> static T load(const T* p, I i) { return p[i]; }
)",
       .checked_host = R"(template <class T, class I>
typename bare<T>::type load(global<T> p, I i, int line = __builtin_LINE()) {
  call_->check_load(call_->runner, p.object, i, sizeof(T), 1, line);
  return p.base[i];
}
)",
       .member = true},
      {.name = "store",
       .cuda = R"(template <class T, class I, class V>
__device__ inline void store(T* p, I i, V v) { p[i] = v; }
)",
       .host = R"(template <class T, class I, class V> static void store(T* p, I i, V v) { p[i] = v; }
)",
       .checked_host =
           R"(template <class T, class I, class V> void store(global<T> p, I i, V v, int line = __builtin_LINE()) {
  call_->check_store(call_->runner, p.object, i, sizeof(T), 1, line);
  p.base[i] = v;
}
)",
       .member = true},
      {.name = "shared",
       .cuda = R"(#define FUSE_SHARED(T, n, name) __shared__ T name[n]
)",
       .host = R"(#define FUSE_SHARED(T, n, name) T* const name = shared_array<T>(n, #name, __LINE__)
template <class T> T* shared_array(long long n, const char* name, int line) {
  return reinterpret_cast<T*>(call_->shared(call_->runner, sizeof(T), n, name, line).address);
}
)",
       .checked_host =
           R"(#define FUSE_SHARED(T, n, name) const global<T> name = shared_array<T>(n, #name, __LINE__)
template <class T> global<T> shared_array(long long n, const char* name, int line) {
  const fuse_array a = call_->shared(call_->runner, sizeof(T), n, name, line);
  return {reinterpret_cast<T*>(a.address), static_cast<int>(~a.number)};
}
)",
       .member = true},
      // Shared memory of which threads access 16 bytes at a time.
      {.name = "shared_vectors",
       .cuda = R"(#define FUSE_SHARED_VECTORS(T, n, name) __shared__ __align__(16) T name[n]
)",
       .host = R"(#define FUSE_SHARED_VECTORS FUSE_SHARED
)",
       .member = true},
      // A thread's own array: registers, where unrolled loops name the elements.
      {.name = "local",
       .cuda = R"(#define FUSE_LOCAL(T, n, name) T name[n]
)",
       .host = R"(#define FUSE_LOCAL(T, n, name) T name[n]
)",
       .checked_host = R"(#define FUSE_LOCAL(T, n, name) local_array<T, n> name{this->call_, #name, {}, {}}
template <class T, int n> struct local_array {
  const fuse_call* call;
  const char* name;
  T value[n];
  bool written[n];
};
template <class T, int n, class I>
static T load(const local_array<T, n>& a, I i, int line = __builtin_LINE()) {
  if (i < 0 || i >= n || !a.written[i]) a.call->local_fault(a.call->runner, a.name, i, n, 0, line);
  return a.value[i];
}
template <class T, int n, class I, class V>
static void store(local_array<T, n>& a, I i, V v, int line = __builtin_LINE()) {
  if (i < 0 || i >= n) a.call->local_fault(a.call->runner, a.name, i, n, 1, line);
  a.value[i] = v;
  a.written[i] = true;
}
)",
       .member = true},
      // Each register goes through an instruction that the compiler does not look into.
      {.name = "keep_packed",
       .cuda = R"(template <class T, int n>
__device__ inline void keep_packed(T (&array)[n]) {
  constexpr int each = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  for (int k = 0; k < n; k += each) {
    unsigned words[sizeof(T) < 4 ? 1 : sizeof(T) / 4];
    memcpy(words, array + k, sizeof words);
    for (unsigned& word : words) asm volatile("" : "+r"(word));
    memcpy(array + k, words, sizeof words);
  }
}
)",
       .host = R"(template <class T, int n> static void keep_packed(T (&)[n]) {}
)",
       .checked_host = R"(template <class T, int n> static void keep_packed(local_array<T, n>&) {}
)",
       .member = true},
      // Between an array and as many elements in memory, whose number divides their index: by accesses of 16
      // bytes, or of all bytes where they are fewer.
      {.name = "vector_bits",
       .cuda = R"(template <int bytes> struct vector_bits;
template <> struct vector_bits<2> { using type = unsigned short; };
template <> struct vector_bits<4> { using type = unsigned; };
template <> struct vector_bits<8> { using type = uint2; };
template <> struct vector_bits<16> { using type = uint4; };
)",
       .host = "template <int bytes> struct vector_bits;\n"},
      {.name = "load_vector",
       .cuda = R"(template <class T, int n, class I>
__device__ inline void load_vector(T (&to)[n], const T* p, I i) {
  constexpr int each = n * sizeof(T) < 16 ? n : 16 / sizeof(T);
  for (int k = 0; k < n; k += each) {
    const auto bits = *reinterpret_cast<const typename vector_bits<each * sizeof(T)>::type*>(p + i + k);
    memcpy(to + k, &bits, sizeof bits);
  }
}
)",
       .host = R"(template <class T, int n, class I> static void load_vector(T (&to)[n], const T* p, I i) {
  __builtin_memcpy(to, p + i, n * sizeof(T));
}
)",
       .checked_host = R"(template <class T, int n, class U, class I>
void load_vector(local_array<T, n>& to, global<U> p, I i, int line = __builtin_LINE()) {
  constexpr int each = n * sizeof(T) < 16 ? n : 16 / sizeof(T);
  for (int k = 0; k < n; k += each) call_->check_load(call_->runner, p.object, i + k, sizeof(T), each, line);
  for (int k = 0; k < n; ++k) to.value[k] = p.base[i + k], to.written[k] = true;
}
)",
       .needs = {"vector_bits"},
       .member = true},
      {.name = "store_vector",
       .cuda = R"(template <class T, int n, class I>
__device__ inline void store_vector(T* p, I i, const T (&from)[n]) {
  constexpr int each = n * sizeof(T) < 16 ? n : 16 / sizeof(T);
  for (int k = 0; k < n; k += each) {
    typename vector_bits<each * sizeof(T)>::type bits;
    memcpy(&bits, from + k, sizeof bits);
    *reinterpret_cast<decltype(bits)*>(p + i + k) = bits;
  }
}
)",
       .host = R"(template <class T, int n, class I> static void store_vector(T* p, I i, const T (&from)[n]) {
  __builtin_memcpy(p + i, from, n * sizeof(T));
}
)",
       .checked_host = R"(template <class T, int n, class I>
void store_vector(global<T> p, I i, const local_array<T, n>& from, int line = __builtin_LINE()) {
  constexpr int each = n * sizeof(T) < 16 ? n : 16 / sizeof(T);
  for (int k = 0; k < n; ++k) load(from, k, line);
  for (int k = 0; k < n; k += each) call_->check_store(call_->runner, p.object, i + k, sizeof(T), each, line);
  for (int k = 0; k < n; ++k) p.base[i + k] = from.value[k];
}
)",
       .needs = {"vector_bits"},
       .member = true},
  };
}

}  // namespace fuse::codegen
