// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/profiler_ranges.hpp"

#if FUSE_COMPILER_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace fuse::runtime {

#if FUSE_COMPILER_HAS_NVTX
namespace {

/// Null without a profiler. One per process, never destroyed: NVTX does not count who uses it.
nvtxDomainHandle_t domain() noexcept {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("fuse");
  return made;
}

class NvtxRanges final : public ProfilerRanges {
 public:
  NvtxRanges(nvtxDomainHandle_t domain, const std::vector<std::string>& names) : domain_(domain) {
    for (const std::string& name : names) {
      names_.push_back(nvtxDomainRegisterStringA(domain, name.c_str()));
    }
  }
  void push(std::size_t name) const noexcept override {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = names_[name];
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void pop() const noexcept override { nvtxDomainRangePop(domain_); }

 private:
  nvtxDomainHandle_t domain_;
  std::vector<nvtxStringHandle_t> names_;
};

}  // namespace

bool profiler_attached() noexcept { return domain() != nullptr; }

std::unique_ptr<const ProfilerRanges> profiler_ranges(const std::vector<std::string>& names) {
  return domain() ? std::make_unique<NvtxRanges>(domain(), names) : nullptr;
}
#else
bool profiler_attached() noexcept { return false; }

std::unique_ptr<const ProfilerRanges> profiler_ranges(const std::vector<std::string>&) { return nullptr; }
#endif

}  // namespace fuse::runtime
