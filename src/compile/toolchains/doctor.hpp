// What fuse finds on this machine: libraries, compiler, directories, devices, and what is wrong with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/device.hpp>
#include <fuse/error.hpp>
#include <string>
#include <vector>

#include "os/shared_library.hpp"
#include "os/temporary_folder.hpp"

namespace fuse::runtime {

/// An Error that a check met.
struct Problem {
  std::string where;  ///< "the NVIDIA driver", "emulated"
  ErrorCode code = ErrorCode::internal;
  std::string message, hint;
};

struct LibraryFinding {
  std::string name;
  bool found = false;
  std::string version;             ///< as the library reports it; empty where it does not
  std::string file;                ///< the file that was loaded, links resolved
  std::vector<std::string> tried;  ///< each candidate and what came of it
  std::string note{};              ///< what is different without it; empty where it is used
};

struct CompilerFinding {
  std::string path;  ///< empty: not found
  std::string version;
  std::string looked_for;
};

struct DirectoryFinding {
  std::string use;   ///< "temporary", "cache"
  std::string path;  ///< empty where there is none
  DirectoryState state{};
  std::string note{};  ///< what fuse writes there
};

struct DeviceFinding {
  std::string name;
  bool works = false;  ///< a kernel and a GEMM gave the right results
  std::string detail;  ///< what it is, or in a few words why it does not work
};

struct Diagnosis {
  std::string version;  ///< the version of fuse
  std::vector<DeviceFinding> devices;
  std::vector<LibraryFinding> libraries;
  CompilerFinding compiler;
  std::vector<int> nvrtc_archs;
  std::vector<DirectoryFinding> directories;
  std::vector<Problem> problems;

  /// True where the emulated or the cuda device works. The reference device always does: it runs no kernels.
  bool usable() const;
};

/// Looks at everything, each once. Runs a small graph on every device that is not yet known to be broken.
/// Never throws what a machine can cause: that is a Problem.
Diagnosis diagnose();

// The steps of diagnose.
LibraryFinding describe(const SharedLibrary& library);
/// Runs `body`; an Error becomes a Problem. False where there was one.
template <class F>
bool check(Diagnosis& d, const std::string& where, F&& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    d.problems.push_back({where, error.code(), error.info().message, error.info().hint});
    return false;
  }
}
/// A kernel and a GEMM on the device; adds its DeviceFinding, or where it fails Problems.
void try_device(Diagnosis& d, const std::string& name, Device (*open)());
/// The driver, NVRTC, cuBLASLt, how they fit, and the GPU. Only in builds with the cuda device.
void diagnose_cuda(Diagnosis& d);

}  // namespace fuse::runtime
