// Text as it stands in XML. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fuse::fusec {

/// With `&`, `<` and `>` spelled out, where they mean themselves.
std::string xml_text(std::string_view text);

}  // namespace fuse::fusec
