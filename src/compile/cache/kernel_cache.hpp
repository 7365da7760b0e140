// KernelCache: the binaries of single kernels, by their text. Kernels are compiled in batches, and a source
// of which only some kernels are new costs the compilation of these. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compile/cache/bounded_cache.hpp"
#include "plan/binary.hpp"

namespace fuse::runtime {

class Toolchain;

/// The text of one kernel, and how it is built (Toolchain::key).
class KernelKey {
 public:
  KernelKey(std::string text, std::string build);
  std::uint64_t hash() const { return hash_; }
  std::size_t weight() const { return text_.size(); }
  bool operator==(const KernelKey&) const = default;

 private:
  std::string text_, build_;
  std::uint64_t hash_;
};

/// A kernel in the image of the batch that it was compiled in.
struct KernelImage {
  std::shared_ptr<const std::vector<char>> bytes;
  std::uint32_t number = 0;  ///< the kernel's index in the image
  std::string maker{};       ///< as Binary::maker
};

using KernelCache = BoundedCache<KernelKey, KernelImage>;

/// What Toolchain::build makes of the source, where kernels that the toolchain's cache has are not compiled
/// again. Throws what Toolchain::build throws.
Binary build_new_kernels(const Toolchain&, const codegen::Source&, int threads);

}  // namespace fuse::runtime
