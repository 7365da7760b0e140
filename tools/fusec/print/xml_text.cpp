// SPDX-License-Identifier: Apache-2.0
#include "fusec/print/xml_text.hpp"

namespace fuse::fusec {

std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace fuse::fusec
