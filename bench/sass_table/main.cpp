// sass_table: a static roofline made from SASS. Each case is compiled by NVRTC and disassembled; nothing
// runs. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "parallel.hpp"
#include "roofline.hpp"
#include "table_cases.hpp"

namespace fuse::bench::sass {
namespace {

void print_row(const CaseCount& count) {
  const KernelCount& kernel = count.longest();
  std::string widths;
  for (const Access& access : kernel.accesses)
    widths += fmt::format(" {}{}:{}", access.stores ? ">" : "", access.buffer, access.bytes);
  std::string slow;
  for (const Unweighted& each : kernel.slow) slow += fmt::format(" {}x{}", each.routine, each.places);
  fmt::print(
      "{:<34} {:>2} {:>6.1f} {:>6.1f} {:<9} {:>6.1f} {:>5.2f} {:>5.2f} {:>4} {:>5} {:>2} {:>6.1f} {:>4.2f} "
      "{:>6} {}{}\n",
      count.name, count.kernels.size(), count.slots, count.cycles, to_string(kernel.bound), count.budget,
      count.share, count.predicted_share_of_copy, kernel.registers, kernel.threads, kernel.blocks_per_sm,
      kernel.waves, kernel.last_wave, kernel.bytes_in_flight, widths, slow);
}

int run(int argc, char** argv) {
  std::string filter, gpu_name = "h200", nvdisasm, keep;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    (option == "--filter" ? filter
     : option == "--gpu"  ? gpu_name
     : option == "--keep" ? keep
                          : nvdisasm) = argv[i + 1];
  }
  const Gpu& gpu = gpu_of(gpu_name);
  Counter counter(Nvdisasm::find(nvdisasm));
  counter.keep = keep;
  std::vector<TableCase> cases;
  for (TableCase& each : table_cases()) {
    if (each.name.find(filter) != std::string::npos) cases.push_back(std::move(each));
  }
  std::vector<CaseCount> counts(cases.size());
  std::vector<std::string> errors(cases.size());
  parallel_for(0, cases.size(), [&](std::size_t i) {
    try {
      counts[i] = counter.count(cases[i].name, cases[i].build(), gpu);
    } catch (const std::exception& error) {
      errors[i] = error.what();
    }
  });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (errors[i].empty()) {
      print_row(counts[i]);
    } else {
      fmt::print("{}: {}\n", cases[i].name, errors[i]);
    }
  }
  return 0;
}

}  // namespace
}  // namespace fuse::bench::sass

int main(int argc, char** argv) {
  ::setenv("FUSE_CACHE", "0", 0);  // nothing of this is the user's
  // Asks for line information, which changes no instruction; nothing is written there.
  ::setenv("FUSE_KEEP", "/tmp", 1);
  try {
    return fuse::bench::sass::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sass_table: %s\n", error.what());
    return 1;
  }
}
