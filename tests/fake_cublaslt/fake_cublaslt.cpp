// A recording libcublasLt over host memory. Its GEMM is three loops over column-major matrices in double, by
// the descriptors it was given and nothing else: it proves how the cuda device maps row-major onto them.
// SPDX-License-Identifier: Apache-2.0
#include "fake_cublaslt/fake_cublaslt.hpp"

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "fake_cuda/fake_cuda.hpp"

namespace {

struct Desc {
  int compute = 0, scale = 0;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  std::array<std::byte, 512> more{};  // than the headers of any version say
};
struct Layout {
  cudaDataType type;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

struct Failure {
  std::string function;
  int countdown = 0;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
};

std::atomic<bool> only_counting = false;
std::atomic<long long> products = 0;

struct State {
  std::mutex mutex;
  std::vector<std::string> calls;
  std::vector<Failure> failures;
  std::set<void*> live;
  std::uint64_t workspace = 0;
  int misuse = 0;
};

// Never destroyed: the library under test may give things back while the process ends.
State& state() {
  static State* s = new State;
  return *s;
}

/// A function of the fake driver beside this library, where the process has it open. `known` keeps it: to
/// look for it in each call would take more time than all that is measured around it.
template <class Function>
Function* of_driver(const char* function, std::atomic<Function*>& known) {
  if (Function* const before = known) return before;
  Dl_info self{};
  if (!::dladdr(reinterpret_cast<void*>(&state), &self)) return nullptr;
  std::array<char, 4096> path{};
  const char* const name = std::strrchr(self.dli_fname, '/');
  const auto folder = static_cast<int>(name ? name + 1 - self.dli_fname : 0);
  std::snprintf(path.data(), path.size(), "%.*slibfake_cuda.so", folder, self.dli_fname);
  void* const driver = ::dlopen(path.data(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  if (driver) known = reinterpret_cast<Function*>(::dlsym(driver, function));
  return known;
}

/// While one lives, the fake does something that the library would not: it allocates.
class Recording {
 public:
  Recording() { tell(1); }
  ~Recording() { tell(0); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  static void tell(int on) {
    static std::atomic<decltype(&fake_cuda_recording)> known{nullptr};
    if (auto* const recording = of_driver("fake_cuda_recording", known)) recording(on);
  }
};

cublasStatus_t enter(const std::string& call) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.calls.push_back(call);
  const std::string function = call.substr(0, call.find(' '));
  for (Failure& failure : s.failures) {
    if (failure.function.empty() || failure.function == function) {
      if (--failure.countdown == 0) return failure.status;
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t misused() {
  const std::lock_guard lock(state().mutex);
  ++state().misuse;
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <class T>
T* born(T* object) {
  const std::lock_guard lock(state().mutex);
  state().live.insert(object);
  return object;
}

template <class T>
cublasStatus_t died(T* object) {
  {
    const std::lock_guard lock(state().mutex);
    if (!state().live.erase(object)) {
      ++state().misuse;
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t set(T& field, const void* from, std::size_t bytes) {
  if (bytes != sizeof field) return misused();
  std::memcpy(&field, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t bytes_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

double decode(std::uint16_t bits, int mantissa, int bias) {
  const int exponent = bits >> mantissa & (2 * bias + 1);
  const int fraction = bits & ((1 << mantissa) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                         : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Finite values in range only: what the tests use.
std::uint16_t encode(double value, int mantissa, int bias) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const auto significand =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::fabs(value), mantissa - exponent)));
  return static_cast<std::uint16_t>(
      sign | ((static_cast<std::uint32_t>(exponent + bias - 1) << mantissa) + significand));
}

double load(cudaDataType type, const void* base, std::int64_t index) {
  const char* at = static_cast<const char*>(base) + index * static_cast<std::int64_t>(bytes_of(type));
  double d;
  float f;
  std::uint16_t h;
  switch (type) {
    case CUDA_R_64F:
      std::memcpy(&d, at, sizeof d);
      return d;
    case CUDA_R_32F:
      std::memcpy(&f, at, sizeof f);
      return f;
    default:
      std::memcpy(&h, at, sizeof h);
      return type == CUDA_R_16F ? decode(h, 10, 15) : decode(h, 7, 127);
  }
}

void store(cudaDataType type, void* base, std::int64_t index, double value) {
  char* at = static_cast<char*>(base) + index * static_cast<std::int64_t>(bytes_of(type));
  const float f = static_cast<float>(value);
  const std::uint16_t h = type == CUDA_R_16F ? encode(f, 10, 15) : encode(f, 7, 127);
  if (type == CUDA_R_64F) std::memcpy(at, &value, sizeof value);
  if (type == CUDA_R_32F) std::memcpy(at, &f, sizeof f);
  if (bytes_of(type) == 2) std::memcpy(at, &h, sizeof h);
}

/// The extent of a dimension of op(matrix).
std::int64_t extent(const Layout& l, std::int32_t operation, bool rows) {
  return static_cast<std::int64_t>(rows == (operation == CUBLAS_OP_N) ? l.rows : l.columns);
}

/// A product, once its operands are known to fit.
/// Of one matrix of a batch: `depth` numbers for each of `lines`, which stand side by side in memory or
/// apart.
std::vector<double> loaded(const Layout& layout, const void* base, std::int64_t batch, std::int64_t lines,
                           std::int64_t depth, bool side_by_side) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(lines * depth));
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const auto at = side_by_side ? line + k * layout.leading : k + line * layout.leading;
      numbers.push_back(load(layout.type, base, batch * layout.stride + at));
    }
  }
  return numbers;
}

struct Product {
  Desc m;
  Layout la, lb, lc, ld;
  const void *a, *b, *c;
  void *d, *workspace;
  std::size_t workspace_bytes;
  double product, addend;

  void compute() const {
    const bool biased = m.epilogue == CUBLASLT_EPILOGUE_BIAS;
    const std::int64_t rows = extent(la, m.transpose_a, true), depth = extent(la, m.transpose_a, false);
    const std::int64_t columns = extent(lb, m.transpose_b, false);
    if (workspace_bytes) std::memset(workspace, 0xee, workspace_bytes);
    for (std::int64_t i = 0; i < ld.batch; ++i) {
      const std::vector<double> left = loaded(la, a, i, rows, depth, m.transpose_a == CUBLAS_OP_N);
      const std::vector<double> right = loaded(lb, b, i, columns, depth, m.transpose_b != CUBLAS_OP_N);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const double *x = left.data() + row * depth, *y = right.data() + column * depth;
          double sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) sum += x[k] * y[k];
          const std::int64_t at = i * ld.stride + row + column * ld.leading;
          sum *= product;
          if (addend != 0) sum += load(lc.type, c, at);
          if (biased) sum += load(ld.type, m.bias, row);
          store(ld.type, d, at, sum);
        }
      }
    }
  }
};

/// Does the work, or leaves it to the graph that the stream is captured into.
cublasStatus_t enqueue(void* stream, const Product& product) {
  const Recording recording;
  static std::atomic<decltype(&fake_cuda_capture_work)> known{nullptr};
  if (auto* const capture = of_driver("fake_cuda_capture_work", known)) {
    auto* const held = new Product(product);
    const auto drop = [](void* data) { delete static_cast<Product*>(data); };
    const int captured = capture(
        stream, "gemm", [](void* data) { static_cast<const Product*>(data)->compute(); }, held, drop);
    if (captured != 0) return captured > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
    drop(held);
  }
  product.compute();
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

struct cublasLtContext {};

#define FAKE_ENTER(call)                                              \
  do {                                                                \
    if (only_counting) break;                                         \
    const Recording recording;                                        \
    if (const cublasStatus_t injected = enter(call)) return injected; \
  } while (false)

extern "C" {

void fake_cublaslt_reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.calls.clear();
  s.failures.clear();
  s.workspace = 0;
  s.misuse = 0;
}
void fake_cublaslt_fail_at(const char* function, int nth, int status) {
  const std::lock_guard lock(state().mutex);
  state().failures.push_back({function, nth, static_cast<cublasStatus_t>(status)});
}
void fake_cublaslt_set_workspace(long long bytes) {
  const std::lock_guard lock(state().mutex);
  state().workspace = static_cast<std::uint64_t>(bytes);
}
void fake_cublaslt_only_count(int on) { only_counting = on != 0; }
long long fake_cublaslt_counted() { return products.exchange(0); }
int fake_cublaslt_call_count() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().calls.size());
}
const char* fake_cublaslt_call(int index) {
  const std::lock_guard lock(state().mutex);
  const auto i = static_cast<std::size_t>(index);
  return index >= 0 && i < state().calls.size() ? state().calls[i].c_str() : "";
}
int fake_cublaslt_live() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().live.size());
}
int fake_cublaslt_misuse() {
  const std::lock_guard lock(state().mutex);
  return state().misuse;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  FAKE_ENTER("cublasLtCreate");
  *handle = born(new cublasLtContext);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return died(handle); }
std::size_t cublasLtGetVersion() {
  const char* text = std::getenv("FAKE_CUBLASLT_VERSION");
  return text ? static_cast<std::size_t>(std::atoi(text)) : 130000;
}
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
         : status == CUBLAS_STATUS_NOT_SUPPORTED  ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                  : "CUBLAS_STATUS_OTHER";
}
const char* cublasLtGetStatusString(cublasStatus_t) { return "the fake was told to fail"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  FAKE_ENTER("cublasLtMatmulDescCreate " + std::to_string(compute));
  auto* made = born(new Desc);
  made->compute = compute;
  made->scale = scale;
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return died(reinterpret_cast<Desc*>(desc));
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
  FAKE_ENTER("cublasLtMatmulDescSetAttribute");
  auto& d = *reinterpret_cast<Desc*>(desc);
  if (which == CUBLASLT_MATMUL_DESC_TRANSA) return set(d.transpose_a, value, bytes);
  if (which == CUBLASLT_MATMUL_DESC_TRANSB) return set(d.transpose_b, value, bytes);
  if (which == CUBLASLT_MATMUL_DESC_EPILOGUE) return set(d.epilogue, value, bytes);
  if (which == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return set(d.bias, value, bytes);
  return misused();
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  FAKE_ENTER("cublasLtMatrixLayoutCreate");
  if (rows == 0 || columns == 0 || leading < static_cast<std::int64_t>(rows)) return misused();
  auto* made = born(new Layout{type, rows, columns, leading});
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return died(reinterpret_cast<Layout*>(layout));
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t which, const void* value,
                                                std::size_t bytes) {
  FAKE_ENTER("cublasLtMatrixLayoutSetAttribute");
  auto& l = *reinterpret_cast<Layout*>(layout);
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(l.batch, value, bytes);
  if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(l.stride, value, bytes);
  return misused();
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  FAKE_ENTER("cublasLtMatmulPreferenceCreate");
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(born(new Preference));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return died(reinterpret_cast<Preference*>(preference));
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, std::size_t bytes) {
  FAKE_ENTER("cublasLtMatmulPreferenceSetAttribute");
  auto& p = *reinterpret_cast<Preference*>(preference);
  switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(p.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(p.reduction, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(p.alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(p.alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(p.alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(p.alignment[3], value, bytes);
    default:
      return misused();
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference,
                                              int wanted, cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  const auto& p = *reinterpret_cast<Preference*>(preference);
  std::uint64_t workspace = 0;
  {
    const std::lock_guard lock(state().mutex);
    workspace = state().workspace;
  }
  FAKE_ENTER("cublasLtMatmulAlgoGetHeuristic workspace " + std::to_string(p.workspace) + " reduction " +
             std::to_string(p.reduction) + " alignment " + std::to_string(p.alignment[0]));
  // The first candidate is one that this problem has no use for: a caller must look at its state. The others
  // are algorithms 0, 1 and 2; operands that are aligned to less than 16 bytes have the first two.
  *found = std::min(wanted, p.alignment[0] < 16 ? 3 : 4);
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].state = i == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    results[i].workspaceSize = workspace;
    results[i].algo.data[0] = p.alignment[0];
    results[i].algo.data[1] = workspace;
    results[i].algo.data[2] = static_cast<std::uint64_t>(std::max(i, 1) - 1);
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// Takes what it proposed itself, and refuses algorithm 2 for fewer than 4 columns.
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  FAKE_ENTER("cublasLtMatmulAlgoCheck algorithm " + std::to_string(algo->data[2]));
  if (algo->data[2] > 2) return CUBLAS_STATUS_INVALID_VALUE;
  if (algo->data[2] == 2 && reinterpret_cast<Layout*>(d)->columns < 4) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->algo = *algo;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->workspaceSize = algo->data[1];
  return CUBLAS_STATUS_SUCCESS;
}

/// An algorithm's numbers follow from its alignment and its number, which is all there is to it.
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, std::size_t bytes, std::size_t* written) {
  if (bytes != sizeof(std::int32_t)) return misused();
  const auto number =
      static_cast<std::int32_t>(algo->data[0] + 100 * algo->data[2]) + static_cast<std::int32_t>(attribute);
  std::memcpy(value, &number, sizeof number);
  if (written) *written = sizeof number;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  if (only_counting) {
    ++products;
    return CUBLAS_STATUS_SUCCESS;
  }
  const auto& m = *reinterpret_cast<Desc*>(desc);
  const auto& la = *reinterpret_cast<Layout*>(a_layout);
  const auto& lb = *reinterpret_cast<Layout*>(b_layout);
  const auto& lc = *reinterpret_cast<Layout*>(c_layout);
  const auto& ld = *reinterpret_cast<Layout*>(d_layout);
  FAKE_ENTER("cublasLtMatmul alignment " + std::to_string(algo->data[0]) + " workspace " +
             std::to_string(workspace_bytes) + " algorithm " + std::to_string(algo->data[2]));
  const std::uintptr_t addresses = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                                   reinterpret_cast<std::uintptr_t>(d);
  const bool biased = m.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if ((!biased && m.epilogue != CUBLASLT_EPILOGUE_DEFAULT) || biased != (m.bias != nullptr)) return misused();
  if (addresses % algo->data[0] || workspace_bytes < algo->data[1]) return misused();
  const double product = load(static_cast<cudaDataType>(m.scale), alpha, 0);
  const double addend = load(static_cast<cudaDataType>(m.scale), beta, 0);
  // As here, one thing at a time; in place only where nothing is added.
  const bool single = (product != 1) + (addend != 0) + biased <= 1;
  if (!single || (addend != 0 && addend != 1) || (c == d) != (addend == 0)) return misused();
  const std::int64_t rows = extent(la, m.transpose_a, true), depth = extent(la, m.transpose_a, false);
  const std::int64_t columns = extent(lb, m.transpose_b, false);
  if (lc.rows != ld.rows || lc.columns != ld.columns || lc.leading != ld.leading || lc.batch != ld.batch ||
      lc.stride != ld.stride || lc.type != ld.type || extent(lb, m.transpose_b, true) != depth ||
      static_cast<std::int64_t>(ld.rows) != rows || static_cast<std::int64_t>(ld.columns) != columns ||
      la.batch != ld.batch || lb.batch != ld.batch) {
    return misused();
  }
  return enqueue(stream, {m, la, lb, lc, ld, a, b, c, d, workspace, workspace_bytes, product, addend});
}

}  // extern "C"
