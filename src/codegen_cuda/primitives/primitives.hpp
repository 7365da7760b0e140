// Device primitives: the one table of what the emitted text may call, each with a CUDA body and a C++ body.
// Inline assembly and warp built-ins appear nowhere else. docs/emulated-device.md has the dialect.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuse::codegen {

struct Primitive {
  std::string_view name;
  std::string_view cuda{};                ///< empty: CUDA has it already
  std::string_view host{};                ///< the C++ body
  std::string_view checked_host{};        ///< the body in checked mode; empty: the same
  std::vector<std::string_view> needs{};  ///< primitives that the CUDA body calls; all stand before it
  bool communicates = false;              ///< a barrier or a warp exchange
  /// What stands for `cuda` in a text with a barrier of blocks (grid, cluster); empty: the same.
  std::string_view cuda_across_blocks{};
  bool member = false;  ///< the C++ body stands inside `struct fuse_device`; so does one that communicates
};

/// Table order is emission order.
const std::vector<Primitive>& primitives();
/// Null for a name that is not in the table (CUDA's own functions, such as expf).
const Primitive* find_primitive(std::string_view name);

/// The CUDA bodies of `used` and of what they need; names outside the table are skipped.
std::string cuda_prelude(const std::vector<std::string>& used);

/// The C++ bodies of what needs no device: functions of values. No #include.
std::string host_functions();

/// Every C++ body, for the emulated device: the engine's interface, the free functions, and `struct
/// fuse_device` of which the kernels become members. No #include.
std::string host_prelude(bool checked);

}  // namespace fuse::codegen
