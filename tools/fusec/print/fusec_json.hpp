// JSON as fusec prints it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fuse::fusec {

using Json = nlohmann::ordered_json;

/// Indented by two, with a line's end; what is not UTF-8 is replaced.
inline std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace fuse::fusec
