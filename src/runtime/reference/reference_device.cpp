// Device::reference, which the library that only runs does not have. SPDX-License-Identifier: Apache-2.0
#include <fuse/device.hpp>

#include "runtime/device/backend.hpp"
#include "runtime/reference/reference_backend.hpp"

namespace fuse {
inline namespace v0 {

Device Device::reference() {
  return {DeviceKind::reference, runtime::make_reference_backend(), "reference", "reference: asked for"};
}

}  // namespace v0
}  // namespace fuse
