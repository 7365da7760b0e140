// SPDX-License-Identifier: Apache-2.0
#include "plan/signature.hpp"

namespace fuse::runtime {

std::string_view to_string(Slot::Kind kind) {
  switch (kind) {
    case Slot::Kind::input:
      return "input";
    case Slot::Kind::parameter:
      return "parameter";
    case Slot::Kind::output:
      return "output";
  }
  return "?";
}

}  // namespace fuse::runtime
