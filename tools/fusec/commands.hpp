// The subcommands: the options of each, which command_line.cpp fills, and what does it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <string>
#include <vector>

namespace fuse::fusec {

struct GraphOptions {
  std::string file{};
  std::string profile = "h200";
  bool profile_named = false;       ///< --profile says so
  std::vector<std::string> dims{};  ///< "B=4"
  CompileOptions compile{};
};

struct PrintOptions {
  std::string file{};
};

struct RunOptions {
  GraphOptions graph{};
  std::string device = "auto";
  std::vector<std::string> inputs{};  ///< "x=x.npy"
  std::string mode{};                 ///< empty: as the decisions say, else streams
  int runs = 1;
  std::uint64_t seed = 1;
  std::string output_dir{};
  std::string trace{};      ///< a file
  std::string decisions{};  ///< a file
  bool check = false;
  bool checked = false;
  bool check_indices = false;  ///< with checked
  bool check_numerics = false;
};

struct BisectOptions {
  RunOptions run{};
};

struct TuneOptions {
  RunOptions run{};
  std::string output{};        ///< a file
  std::string picture{};       ///< a file
  std::string budget = "60s";  ///< "90s", "5m"
  std::string bits = "keep";   ///< keep, any
  int options = 8, cuts = 4, groups = 4, epochs = 4;
  int samples = 0;
  bool virtual_clock = false;
};

struct MergeOptions {
  std::vector<std::string> files{};
  std::string output{};  ///< a file
};

struct PlanOptions {
  GraphOptions graph{};
  std::string dot{};        ///< a file
  std::string picture{};    ///< a file
  std::string decisions{};  ///< a file
  bool json = false;
  bool kernels = false;
};

struct EmitOptions {
  GraphOptions graph{};
  std::string directory{};
  std::string arch{};
  bool cubin = false;
};

struct ExplainOptions {
  GraphOptions graph{};
  std::vector<std::string> edge{};  ///< empty, or producer and consumer
};

struct StatsOptions {
  GraphOptions graph{};
  bool json = false;
};

struct NestsOptions {
  GraphOptions graph{};
  int segment = -1;  ///< all of them
  int count = 20;    ///< that are printed of each
};

struct DiffOptions {
  GraphOptions graph{};  ///< how graphs are planned
  std::string first{}, second{};
};

struct SaveOptions {
  GraphOptions graph{};
  std::string output{};                 ///< a file
  std::vector<std::string> profiles{};  ///< of emulated devices and levels of CPUs that it is for
  bool cuda = false;                    ///< for the first GPU too
  bool cpu = false;                     ///< for the cpu device of this machine too
  bool time_gemms = false;              ///< measure the algorithms of GEMMs first
};

struct CacheOptions {
  enum class Action : std::uint8_t { list, verify, clear };
  Action action = Action::list;
};

struct OpsOptions {};

struct DoctorOptions {
  bool json = false;
};

/// Each returns the exit status: 0, or 1 where a check failed. Throws Error.
int execute(const PrintOptions& options);
int execute(const RunOptions& options);
int execute(const BisectOptions& options);
int execute(const TuneOptions& options);
int execute(const PlanOptions& options);
int execute(const EmitOptions& options);
int execute(const ExplainOptions& options);
int execute(const StatsOptions& options);
int execute(const NestsOptions& options);
int execute(const MergeOptions& options);
int execute(const DiffOptions& options);
int execute(const SaveOptions& options);
int execute(const CacheOptions& options);
int execute(const OpsOptions& options);
int execute(const DoctorOptions& options);

}  // namespace fuse::fusec
