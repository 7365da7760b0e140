// Toolchain: what makes machine code from emitted text. A device has one where its library can compile; the
// library that only runs has none (no_toolchains.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "plan/binary.hpp"
#include "plan/source.hpp"
#include "target/target.hpp"

namespace fuse::runtime {

class CompileCache;
struct Driver;

class Toolchain {
 public:
  Toolchain();
  virtual ~Toolchain();
  /// Compiles on at most `threads` threads or processes; 0: one per core. Thread safe. Throws
  /// missing_compiler, missing_library, incompatible_version, broken_install, io; internal where it refuses
  /// the text.
  virtual Binary build(const codegen::Source&, int threads) const = 0;
  /// Whether a binary says at which lines of the text its kernels stand, so that equal kernels elsewhere in
  /// another text have other binaries.
  virtual bool binds_lines() const { return true; }
  /// What besides the source decides what `build` makes: compiler, version, options.
  virtual std::string key() const = 0;
  /// What was looked for and where it was, one per line.
  virtual std::string report() const = 0;
  /// What was compiled with it in this process.
  CompileCache& cache() const { return *cache_; }
  /// What was looked up in the cache, found and kept, one per line.
  virtual std::string remembered() const;

 private:
  const std::unique_ptr<CompileCache> cache_;  // modules in it hold what they need of the device
};

/// `optimization`: the C++ compiler's -O, 0 to 3. Null in the library that only runs.
std::shared_ptr<const Toolchain> emulated_toolchain(int optimization, bool checked);

/// For a CPU of that feature level ("x86-64-v3"). Null in the library that only runs.
std::shared_ptr<const Toolchain> cpu_toolchain(const std::string& machine);

/// For the target's arch. Null in the library that only runs.
std::shared_ptr<const Toolchain> cuda_toolchain(std::shared_ptr<const Driver> driver, const Target& target);

}  // namespace fuse::runtime
