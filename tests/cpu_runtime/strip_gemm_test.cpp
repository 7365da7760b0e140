// GEMMs by the cpu device's own kernels: within the bound of their sums, for every level, type and layout.
// Bits are the same for every number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/strip_gemm.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/cpu/gemm/cpu_gemm.hpp"
#include "runtime/cpu/gemm/strip_plan.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/small_numbers.hpp"

namespace fuse::test {
namespace {

using runtime::GemmDesc;
using runtime::cpu::GemmKernels;
using runtime::cpu::StripPlan;
using schedule::EpilogueKind;

struct StripTypes {
  DType operand, result;
};
constexpr StripTypes strip_types[] = {{f32, f32}, {bf16, bf16}, {bf16, f32}, {f16, f16}, {f16, f32}};

std::vector<const GemmKernels*> kernels_here() {
  std::vector<const GemmKernels*> found;
  for (const char* level : {"x86-64-v4", "x86-64-v3", "portable"}) {
    if (const GemmKernels* const kernels = runtime::cpu::gemm_kernels_of(level)) found.push_back(kernels);
  }
  return found;
}

/// Elements of one type, read and written as f32; what is not written keeps a pattern.
struct Cells {
  Cells(DType of, std::int64_t count)
      : type(of), bytes(static_cast<std::size_t>(count) * size_of(of), std::byte{0x5a}) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  void set(std::int64_t i, float x) {
    if (type == f32) as<float>()[i] = x;
    if (type == bf16) as<bfloat16>()[i] = runtime::narrow(x, static_cast<bfloat16*>(nullptr));
    if (type == f16) as<half>()[i] = runtime::narrow(x, static_cast<half*>(nullptr));
  }
  float get(std::int64_t i) {
    return type == f32    ? as<float>()[i]
           : type == bf16 ? runtime::widen(as<bfloat16>()[i])
                          : runtime::widen(as<half>()[i]);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes.size() / size_of(type)); }
  DType type;
  std::vector<std::byte> bytes;
};

struct StripCase {
  explicit StripCase(const GemmDesc& d)
      : desc(d),
        a(d.operand, extent(d.transpose_a ? d.k : d.m, row_of_a(d), d.stride_a, d.call_a)),
        b(d.operand, extent(d.transpose_b ? d.n : d.k, row_of_b(d), d.stride_b, d.call_b)),
        c(d.result, extent(d.m, row_of_c(d), d.stride_c, d.call_c)),
        extra(d.result, c.count()) {
    SmallNumbers next(7);
    for (Cells* cells : {&a, &b, &extra})
      for (std::int64_t i = 0; i < cells->count(); ++i) cells->set(i, next());
    widen();
  }
  /// After a or b was changed.
  void widen() {
    wide_a.clear();
    wide_b.clear();
    sums_.clear();
    for (std::int64_t i = 0; i < a.count(); ++i) wide_a.push_back(a.get(i));
    for (std::int64_t i = 0; i < b.count(); ++i) wide_b.push_back(b.get(i));
  }
  std::int64_t extent(std::int64_t rows, std::int64_t row, std::int64_t stride, std::int64_t call) const {
    return rows * row + (desc.batch - 1) * stride + (desc.calls - 1) * call;
  }
  /// Of the sums: what they are exactly, but for the double's own errors, and with absolute values.
  struct Exact {
    double sum = 0, magnitude = 0;
  };
  /// All of them: calls, matrices of a batch, rows, columns. Copies keep what was computed before.
  const std::vector<Exact>& sums() {
    if (sums_.empty()) compute_sums();
    return sums_;
  }
  GemmDesc desc;
  Cells a, b, c, extra;
  std::vector<double> wide_a, wide_b;

 private:
  void compute_sums() {
    for (std::int64_t matrix = 0; matrix < desc.calls * desc.batch; ++matrix) {
      for (std::int64_t i = 0; i < desc.m; ++i) {
        for (std::int64_t j = 0; j < desc.n; ++j)
          sums_.push_back(exact(matrix / desc.batch, matrix % desc.batch, i, j));
      }
    }
  }
  Exact exact(std::int64_t call, std::int64_t batch, std::int64_t i, std::int64_t j) const {
    const std::int64_t at_a = call * desc.call_a + batch * desc.stride_a,
                       at_b = call * desc.call_b + batch * desc.stride_b;
    Exact e;
    // Tests are not optimised: what is in this loop is most of their time.
    const double* x = wide_a.data() + at_a + (desc.transpose_a ? i : i * row_of_a(desc));
    const double* y = wide_b.data() + at_b + (desc.transpose_b ? j * row_of_b(desc) : j);
    const std::int64_t next_x = desc.transpose_a ? row_of_a(desc) : 1,
                       next_y = desc.transpose_b ? 1 : row_of_b(desc);
    for (std::int64_t k = 0; k < desc.k; ++k, x += next_x, y += next_y) {
      const double product = *x * *y;
      e.sum += product;
      e.magnitude += product < 0 ? -product : product;
    }
    return e;
  }

  std::vector<Exact> sums_;
};

struct StripQueue final : runtime::Queue {
  using Queue::Queue;
  Status synchronize() noexcept override { return {}; }
};

/// `packed`: b is packed first.
void run_strips(StripCase& x, int threads, const GemmKernels& kernels, bool packed = false) {
  const auto pool =
      std::make_shared<runtime::cpu::WorkerPool>(runtime::cpu::WorkerPool::Options{.threads = threads});
  StripQueue queue(&pool);
  GemmDesc desc = x.desc;
  desc.packed_b = packed;
  const auto gemm = runtime::cpu::make_strip_gemm(desc, pool, &pool, kernels);
  // What lies in the workspace is no number.
  std::vector<std::byte> workspace(static_cast<std::size_t>(gemm->workspace_bytes()), std::byte{0xff});
  const void* b = x.b.bytes.data();
  std::vector<std::byte> panels;
  if (packed) {
    panels.assign(static_cast<std::size_t>(runtime::cpu::panel_bytes(x.desc, false, kernels)),
                  std::byte{0xff});
    REQUIRE(!panels.empty());
    REQUIRE(runtime::cpu::pack_panels(x.desc, *pool, b, panels.data(), kernels));
    b = panels.data();
  }
  REQUIRE(gemm->run(queue, x.a.bytes.data(), b, x.c.bytes.data(), workspace.data(), x.extra.bytes.data()));
}

/// What lies further from the exact result than k products, k - 1 additions in any order, an epilogue and one
/// rounding may; and what is written that is no result.
std::int64_t outside_bound(StripCase& x) {
  const GemmDesc& d = x.desc;
  const double u = 0x1p-24, gamma = static_cast<double>(d.k) * u / (1 - static_cast<double>(d.k) * u),
               of_result = d.result == bf16  ? 0x1p-8
                           : d.result == f16 ? 0x1p-11
                                             : u;
  std::int64_t wrong = 0;
  auto exact = x.sums().begin();
  std::vector<bool> written(static_cast<std::size_t>(x.c.count()));
  for (std::int64_t matrix = 0; matrix < d.calls * d.batch; ++matrix) {
    const std::int64_t call = matrix / d.batch, batch = matrix % d.batch;
    for (std::int64_t i = 0; i < d.m; ++i) {
      for (std::int64_t j = 0; j < d.n; ++j) {
        const std::int64_t at = call * d.call_c + batch * d.stride_c + i * row_of_c(d) + j;
        written[static_cast<std::size_t>(at)] = true;
        const auto [sum, magnitude] = *exact++;
        double value = sum, bound = gamma * magnitude;
        if (d.epilogue == EpilogueKind::bias || d.epilogue == EpilogueKind::add)
          value += x.extra.get(d.epilogue == EpilogueKind::bias ? j : at);
        if (d.epilogue == EpilogueKind::scale) {
          value *= static_cast<float>(d.scale);
          bound *= std::fabs(d.scale);
        }
        if (d.epilogue != EpilogueKind::none) bound += u * (std::fabs(value) + bound);
        bound += of_result * (std::fabs(value) + bound) + 0x1p-25;
        wrong += !(std::fabs(x.c.get(at) - value) <= bound);
      }
    }
  }
  const std::size_t size = size_of(d.result);
  for (std::size_t i = 0; i < written.size(); ++i)
    for (std::size_t byte = 0; byte < size && !written[i]; ++byte)
      wrong += x.c.bytes[i * size + byte] != std::byte{0x5a};
  return wrong;
}

void check_strips(const GemmDesc& desc, bool every_level = true) {
  StripCase inputs(desc);
  static_cast<void>(inputs.sums());  // once for all
  for (const GemmKernels* const kernels : kernels_here()) {
    if (!every_level && kernels != &runtime::cpu::gemm_kernels()) continue;
    INFO(runtime::gemm_text(desc) << ", " << desc.calls << " calls, on " << kernels->level);
    StripCase one = inputs;
    run_strips(one, 1, *kernels);
    CHECK(outside_bound(one) == 0);
    for (const int threads : {1, 2, 8}) {
      StripCase again = inputs;
      run_strips(again, threads, *kernels);
      CHECK((again.c.bytes == one.c.bytes));  // what differs would be pages of numbers
    }
  }
}

/// Of all types and all four layouts; `rows_apart`: rows are longer than what they hold.
void check_layouts(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t rows_apart) {
  for (const StripTypes& types : strip_types) {
    for (int layout = 0; layout < 4; ++layout) {
      GemmDesc d{.m = m, .n = n, .k = k, .transpose_a = (layout & 1) != 0, .transpose_b = (layout & 2) != 0};
      d.operand = types.operand;
      d.result = types.result;
      if (rows_apart > 0) {
        d.row_a = (d.transpose_a ? m : k) + rows_apart;
        d.row_b = (d.transpose_b ? k : n) + rows_apart;
        d.row_c = n + rows_apart;
      }
      check_strips(d);
    }
  }
}

TEST_CASE("few rows by a matrix are within the bound of their sums", "[gemm][runtime]") {
  for (std::int64_t m = 1; m <= 9; ++m) check_layouts(m, 77 + m, 41 + 2 * m, 0);
  check_layouts(13, 150, 70, 3);
  check_layouts(1, 1, 1, 0);
  check_layouts(2, fewer(1111, 2), fewer(600, 2), 5);
}

TEST_CASE("a matrix by few columns is within the bound of its sums", "[gemm][runtime]") {
  for (const std::int64_t n : {1, 2, 4, 7, 8, 16}) check_layouts(90 + n, n, 53 + n, n % 3);
}

TEST_CASE("small matrices are within the bound of their sums", "[gemm][runtime]") {
  check_layouts(17, 17, 17, 0);
  check_layouts(32, 48, 20, 1);
  check_layouts(64, 64, 64, 0);
  check_layouts(61, 35, 130, 600);
}

TEST_CASE("matrices of several tiles are within the bound of their sums", "[gemm][runtime]") {
  if (sanitized()) return;
  check_layouts(150, 290, 300, 0);
  check_layouts(131, 67, 520, 7);
}

TEST_CASE("products of a packed matrix are within the bound of their sums", "[gemm][runtime]") {
  for (const StripTypes& types : strip_types) {
    for (int layout = 0; layout < 4; ++layout) {
      // Rows of one group and of several, the last panel narrow, full and cut in a vector, several pieces and
      // parts of k.
      for (const auto& [m, n, k] :
           {std::array<std::int64_t, 3>{1, 40, 32}, {5, 96, 513}, {13, 33, 2100}, {150, 145, 64}}) {
        GemmDesc d{
            .m = m, .n = n, .k = k, .transpose_a = (layout & 1) != 0, .transpose_b = (layout & 2) != 0};
        d.operand = types.operand;
        d.result = types.result;
        d.epilogue = types.result == f32 && m == 5 ? EpilogueKind::bias : EpilogueKind::none;
        d.row_b = (d.transpose_b ? k : n) + 3;
        StripCase inputs(d);
        static_cast<void>(inputs.sums());
        for (const GemmKernels* const kernels : kernels_here()) {
          INFO(runtime::gemm_text(d) << ", packed, on " << kernels->level);
          StripCase one = inputs, two = inputs;
          run_strips(one, 1, *kernels, true);
          CHECK(outside_bound(one) == 0);
          run_strips(two, 3, *kernels, true);
          CHECK((one.c.bytes == two.c.bytes));
        }
      }
    }
  }
}

TEST_CASE("a matrix is packed where it serves all matrices of a batch and products gain by it",
          "[gemm][runtime]") {
  const GemmKernels& kernels = *runtime::cpu::gemm_kernels_of("portable");
  GemmDesc d{.batch = 3, .m = 20, .n = 40, .k = 64};
  const std::int64_t once = runtime::cpu::panel_bytes(d, false, kernels);
  CHECK(once == 40 * 64 * 4);
  d.stride_b = 40 * 64;
  CHECK(runtime::cpu::panel_bytes(d, false, kernels) == 0);
  d.batch = 1;
  CHECK(runtime::cpu::panel_bytes(d, false, kernels) == once);
  d.m = 0;  // of b alone
  CHECK(runtime::cpu::panel_bytes(d, false, kernels) == once);
  CHECK(runtime::cpu::panel_bytes(d, true, kernels) ==
        0);  // OpenBLAS is faster than panels of so few columns
  d.n = 4;
  CHECK(runtime::cpu::panel_bytes(d, false, kernels) == 0);
}

TEST_CASE("the last panel is filled up with zeros", "[gemm][runtime]") {
  const GemmKernels& kernels = *runtime::cpu::gemm_kernels_of("portable");
  StripCase x({.m = 20, .n = 33, .k = 40});
  runtime::cpu::WorkerPool pool({.threads = 1});
  const runtime::cpu::PanelLayout layout = runtime::cpu::panel_layout_of(40, 33, kernels.panel_columns);
  std::vector<float> panels(static_cast<std::size_t>(layout.elements()), -1);
  REQUIRE(runtime::cpu::pack_panels(x.desc, pool, x.b.bytes.data(), panels.data(), kernels));
  std::int64_t wrong = 0;
  for (std::int64_t k = 0; k < 40; ++k) {
    const float* const row = panels.data() + layout.offset(0, 32) + k * layout.panel_columns;
    wrong += row[0] != x.b.get(k * 33 + 32);
    for (std::int64_t column = 1; column < layout.panel_columns; ++column) wrong += row[column] != 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("long sums of few results are cut into parts", "[gemm][runtime][not-sanitized]") {
  for (const StripTypes& types : strip_types) {
    for (int layout = 0; layout < 4; ++layout) {
      GemmDesc d{.m = 3, .n = 20, .k = 70000, .transpose_a = (layout & 1) != 0};
      d.transpose_b = (layout & 2) != 0;
      d.operand = types.operand;
      d.result = types.result;
      CHECK(runtime::cpu::strip_plan_of(d, 48).parts > 4);
      check_strips(d, false);
      std::swap(d.m, d.n);
      check_strips(d, false);
    }
  }
}

TEST_CASE("strips of batches and calls lie where they are wanted, with an epilogue", "[gemm][runtime]") {
  for (const StripTypes& types : strip_types) {
    for (int layout = 0; layout < 4; ++layout) {
      GemmDesc d{.batch = 3, .m = 20, .n = 40, .k = 64, .stride_a = 64, .stride_b = 64, .stride_c = 40};
      d.transpose_a = (layout & 1) != 0;
      d.transpose_b = (layout & 2) != 0;
      d.operand = types.operand;
      d.result = types.result;
      d.row_a = 210;
      d.row_b = 200;
      d.row_c = 130;
      d.calls = 2;
      d.call_a = 15400;
      d.call_b = 12800;
      d.call_c = 2700;
      check_strips(d);
      d.m = 2;
      check_strips(d);
      if (is_half(types.result)) continue;
      GemmDesc with{.batch = 2, .m = 5, .n = 90, .k = 33, .stride_a = 165, .stride_b = 2970, .stride_c = 450};
      with.transpose_a = d.transpose_a;
      with.transpose_b = d.transpose_b;
      with.operand = types.operand;
      with.scale = -0.3;
      for (const EpilogueKind kind : {EpilogueKind::bias, EpilogueKind::add, EpilogueKind::scale}) {
        with.epilogue = kind;
        check_strips(with);
        GemmDesc turned = with;
        std::swap(turned.m, turned.n);
        std::swap(turned.stride_a, turned.stride_b);
        check_strips(turned);
      }
    }
  }
}

TEST_CASE("no number and infinity come through a product", "[gemm][runtime]") {
  const float none = std::numeric_limits<float>::quiet_NaN(),
              infinite = std::numeric_limits<float>::infinity();
  const std::int64_t shapes[][3] = {{1, 100, 70}, {5, 70, 40}, {100, 3, 50}, {40, 50, 60}, {2, 20, 70000}};
  for (const auto& [m, n, k] : shapes) {
    for (const StripTypes& types : strip_types) {
      for (int layout = 0; layout < 4; ++layout) {
        StripCase x({.m = m,
                     .n = n,
                     .k = k,
                     .transpose_a = (layout & 1) != 0,
                     .operand = types.operand,
                     .result = types.result});
        x.desc.transpose_b = (layout & 2) != 0;
        x.a.set(x.a.count() - 1, none);
        x.b.set(0, infinite);
        x.b.set(x.b.count() - 2, -infinite);
        x.widen();
        for (const GemmKernels* const kernels : kernels_here()) {
          run_strips(x, 2, *kernels);
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
              const double sum = x.sums()[static_cast<std::size_t>(i * n + j)].sum, got = x.c.get(i * n + j);
              wrong += std::isnan(sum)   ? !std::isnan(got)
                       : std::isinf(sum) ? got != sum
                                         : !std::isfinite(got);
            }
          }
          INFO(runtime::gemm_text(x.desc) << " on " << kernels->level);
          CHECK(wrong == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuse::test
