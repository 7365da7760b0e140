// A user's own kernel as an op of the graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <fuse/function_ref.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fuse {
inline namespace v0 {

/// A dense row-major tensor in host memory, as a CustomReference sees it: float, double, half, bfloat16,
/// int64_t, int32_t, int8_t or uint8_t elements; a bool is a byte that holds 0 or 1.
struct HostView {
  DType dtype = f32;                     ///< the element type
  std::span<const std::int64_t> dims{};  ///< the extents
  void* data = nullptr;                  ///< the first element
};

/// Computes the result of a custom_call on the host: what the reference device runs. Reads the operands,
/// writes every element of the result. May be called from several threads.
class CustomReference {
 public:
  /// No function.
  CustomReference() = default;
  /// A function that computes the result; copies of this share it.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, CustomReference> &&
           std::is_invocable_v<const std::decay_t<F>&, std::span<const HostView>, HostView>)
      CustomReference(F&& function)  // NOLINT: `.reference = [](std::span<const HostView> operands, ..) {..}`
      : function_(std::forward<F>(function)) {}

  /// True when there is a function.
  explicit operator bool() const { return static_cast<bool>(function_); }
  /// Calls the function, which must be there.
  void operator()(std::span<const HostView> operands, HostView result) const { function_(operands, result); }

 private:
  detail::SharedFunction<void(std::span<const HostView>, HostView)> function_;
};

/// One kernel in the device dialect (docs/emulated-device.md) and its launch. The text has one function
///   FUSE_KERNEL(threads) name(global<const float> operand.., global<float> result, long long extent..) { ..
///   }
/// with a buffer for each operand, then the result, then one `long long` for each of `extents`. It reads and
/// writes by load(buffer, index) and store(buffer, index, value), which the emulated device checks.
///
/// With `grid_barrier` the blocks wait for each other: the function has one more parameter after the result,
/// `global<int> barrier`, which fuse makes and zeroes, and calls grid_barrier(barrier) wherever all blocks
/// must have arrived. All of them must have slots on the multiprocessors at once, or the kernel never ends:
/// the cuda device refuses such a launch, and the emulated one reports it. So a workspace reserves slots for
/// them, and where those of other workspaces leave too few, `parts` are launched instead.
struct CustomKernel {
  std::string name;               ///< the function's name; calls with equal kernels share its text
  std::string source;             ///< the function and nothing else; helpers are lambdas in it
  int threads = 256;              ///< threads per block, a multiple of 32
  std::int64_t shared_bytes = 0;  ///< all FUSE_SHARED arrays, each rounded up to 16 bytes; at most 48 KiB
  Dim grid = 1;                   ///< blocks
  std::vector<Dim> extents{};     ///< the values that the kernel takes after its buffers, in this order
  CustomReference reference{};    ///< without it the reference device refuses the graph
  bool grid_barrier = false;      ///< the blocks wait for each other
  /// The fallback launches, which do the same without waiting: the kernel cut at its barriers into functions
  /// NAME_0, NAME_1, ... of the same parameters but `barrier`. They are launched one after the other, each
  /// with the kernel's grid, block and shared memory. None: where they are needed there is an error
  /// (out_of_residency).
  std::vector<std::string> parts{};
};

}  // namespace v0
}  // namespace fuse
