// The environment variables that fuse reads: one list, one reader (but for OPENBLAS_CORETYPE, which is
// OpenBLAS's). All are for tests, for finding out what a machine has, and for where things are kept; an
// application needs none. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

enum class Variable : std::uint8_t {
  none,
  cxx,  ///< FUSE_CXX: the compiler of the cpu and the emulated device, instead of c++, g++, clang++ on PATH
  libcuda,         ///< FUSE_LIBCUDA: a file to open instead of libcuda.so.1
  libnvrtc,        ///< FUSE_LIBNVRTC: instead of libnvrtc.so.13 and older
  libcublaslt,     ///< FUSE_LIBCUBLASLT: instead of libcublasLt.so.13 and older
  libopenblas,     ///< FUSE_LIBOPENBLAS: instead of libopenblas.so.0
  cuda_home,       ///< CUDA_HOME, the toolkit's own: where its libraries are looked for
  cuda_path,       ///< CUDA_PATH, likewise
  path,            ///< PATH: where compilers are looked for
  tmpdir,          ///< TMPDIR: where kernels of the cpu and the emulated device are built, instead of /tmp
  fault,           ///< FUSE_FAULT: "barrier.0" and so on, a fault that is planted in the kernels
                   ///< (docs/emulated-device.md)
  cache,           ///< FUSE_CACHE: 0 neither reads nor keeps what was compiled (docs/deploy.md)
  cache_dir,       ///< FUSE_CACHE_DIR: where it is kept, instead of the two below
  xdg_cache_home,  ///< XDG_CACHE_HOME: the directory of fuse-compiler/
  home,            ///< HOME: the directory of .cache/fuse-compiler/
  keep,   ///< FUSE_KEEP: a directory for emitted texts, which debuggers then show (docs/debugging.md)
  sync,   ///< FUSE_SYNC: 1 waits for each step of a run, and names the one that fails (docs/debugging.md)
  repro,  ///< FUSE_REPRO: a directory for what makes a failed run fail again; FUSE_SYNC too
  repro_data,  ///< FUSE_REPRO_DATA: 1 puts the values of inputs and parameters there
  contract,  ///< FUSE_CONTRACT: 1 makes a run fail that allocates, compiles, locks or waits (docs/runtime.md)
};

/// "FUSE_CXX"; empty for none.
std::string_view name_of(Variable);
/// All but none, in their order.
std::vector<Variable> all_variables();
/// The value; empty where it is not set.
std::string value_of(Variable);

}  // namespace fuse
