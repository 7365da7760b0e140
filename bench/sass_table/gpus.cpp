// SPDX-License-Identifier: Apache-2.0
#include "gpus.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace fuse::bench::sass {

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> table = {
      {"h200", "h200", 132, 1.98e9, 4.3e12,
       "H200 SXM data sheet: 132 SMs, boost 1.98 GHz, 4.8 TB/s, of which a copy reaches about 0.9"},
      {"h100", "h200", 132, 1.755e9, 3.0e12,
       "H100 SXM data sheet: 132 SMs, boost under load 1.755 GHz, 3.35 TB/s, of which a copy reaches about "
       "0.9"},
      {"a100", "a100", 108, 1.41e9, 1.7e12,
       "A100 SXM 80 GB data sheet: 108 SMs, boost 1.41 GHz, 2.04 TB/s, of which a copy reaches about 0.83"},
  };
  return table;
}

const Gpu& gpu_of(std::string_view name) {
  std::string known;
  for (const Gpu& gpu : gpus()) {
    if (gpu.name == name) return gpu;
    known += (known.empty() ? "" : ", ") + std::string(gpu.name);
  }
  throw std::runtime_error(fmt::format("unknown GPU '{}'; there are {}", name, known));
}

double budget_of_byte(const Gpu& gpu) { return gpu.sms * sub_partitions * 32 * gpu.clock / gpu.copy; }

}  // namespace fuse::bench::sass
