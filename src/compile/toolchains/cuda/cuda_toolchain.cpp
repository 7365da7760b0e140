// Emitted text to cubins, by NVRTC. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "compile/toolchains/cuda/nvrtc.hpp"
#include "compile/toolchains/kept_text.hpp"
#include "os/environment.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime {
namespace {

class CudaToolchain final : public Toolchain {
 public:
  CudaToolchain(std::shared_ptr<const Driver> driver, const Target& target)
      : driver_(std::move(driver)), target_(target) {}

  Binary build(const codegen::Source& given, int threads) const override {
    const codegen::Source source = with_kept_text(given);
    check_driver_covers(*driver_, nvrtc_library());
    check_clusters(source.kernels, target_);  // NVRTC's words for it are those of the text
    Binary binary = binary_of(source, compile_to_cubins(source, target_.arch, threads));
    binary.name = given.name;
    return binary;
  }

  std::string key() const override {
    const auto [major, minor] = nvrtc_version();
    std::string key = fmt::format("nvrtc {}.{}", major, minor);
    for (const std::string& option : nvrtc_options(target_.arch, 1)) key += ' ' + option;
    return keeps_text() ? key + " kept in " + value_of(Variable::keep) : key;
  }

  bool binds_lines() const override { return keeps_text(); }

  std::string report() const override { return nvrtc_report(); }

 private:
  const std::shared_ptr<const Driver> driver_;
  const Target target_;
};

}  // namespace

Binary binary_of(const codegen::Source& source, const std::vector<Cubin>& cubins) {
  const auto [major, minor] = nvrtc_version();
  Binary binary{.name = source.name,
                .maker = fmt::format("NVRTC {}.{}", major, minor),
                .kernels = source.kernels,
                .images = {}};
  std::size_t left = source.kernels.size();
  for (const Cubin& cubin : cubins) {
    const std::size_t own = &cubin == &cubins.back() ? left : cubin.kernels.size();
    binary.images.push_back({cubin.image, static_cast<std::uint32_t>(own)});
    left -= own;
  }
  return binary;
}

std::shared_ptr<const Toolchain> cuda_toolchain(std::shared_ptr<const Driver> driver, const Target& target) {
  return std::make_shared<CudaToolchain>(std::move(driver), target);
}

}  // namespace fuse::runtime
