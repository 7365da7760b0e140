// SPDX-License-Identifier: Apache-2.0
#include "sass_table/sass/buffers.hpp"

#include <cctype>
#include <charconv>
#include <map>
#include <string>
#include <string_view>

#include "sass_table/sass/opcodes.hpp"

namespace fuse::bench::sass {
namespace {

constexpr int none = -1;

/// "R8" and "UR4" of an operand, each once; RZ and predicates are none.
std::vector<std::string> registers_in(std::string_view operand) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < operand.size(); ++at) {
    if (operand[at] != 'R' && operand[at] != 'U') continue;
    if (at > 0 && (std::isalnum(static_cast<unsigned char>(operand[at - 1])) || operand[at - 1] == '_'))
      continue;
    std::size_t end = at + 1;
    if (operand[at] == 'U' && end < operand.size() && operand[end] == 'R') ++end;
    const std::size_t digits = end;
    while (end < operand.size() && std::isdigit(static_cast<unsigned char>(operand[end]))) ++end;
    if (end > digits) found.emplace_back(operand.substr(at, end - at));
    at = end - 1;
  }
  return found;
}

std::string next_register(const std::string& name) {
  const auto digits = name.find_first_of("0123456789");
  return name.substr(0, digits) + std::to_string(std::stoi(name.substr(digits)) + 1);
}

/// The parameter of "c[0x0][0x210]".
int parameter_in(std::string_view operand, int first, int buffers) {
  constexpr std::string_view bank = "c[0x0][0x";
  const auto at = operand.find(bank);
  if (at == std::string_view::npos) return none;
  int offset = 0;
  std::from_chars(operand.data() + at + bank.size(), operand.data() + operand.size(), offset, 16);
  const int parameter = (offset - first) / 8;
  return offset >= first && parameter < buffers ? parameter : none;
}

}  // namespace

std::vector<int> buffers_of(const std::vector<Instruction>& code, int buffers, int arch) {
  const int first = arch >= 90 ? 0x210 : 0x160;  // of the parameters in their constant bank
  std::map<std::string, int> from;               // what each register was made of
  std::vector<int> result;
  for (const Instruction& one : code) {
    const bool loads = loads_global(one), stores = stores_global(one);
    int parameter = none;
    const std::size_t sources = stores ? 0 : 1;
    for (std::size_t i = sources; i < one.operands.size(); ++i) {
      if (stores && !one.operands[i].starts_with('[') && !one.operands[i].starts_with("desc[")) continue;
      if (const int direct = parameter_in(one.operands[i], first, buffers); direct != none)
        parameter = direct;
      for (const std::string& name : registers_in(one.operands[i])) {
        const auto at = from.find(name);
        if (at != from.end() && at->second != none) parameter = at->second;
      }
    }
    result.push_back(loads || stores ? parameter : none);
    if (stores || one.operands.empty()) continue;
    const std::vector<std::string> made = registers_in(one.operands[0]);
    if (made.empty()) continue;
    // What was loaded, or computed from nothing of an address, is no address.
    const int registers = loads ? (access_bytes(one) + 3) / 4 : one.has("64") || one.has("WIDE") ? 2 : 1;
    std::string name = made[0];
    for (int i = 0; i < registers; ++i, name = next_register(name)) from[name] = loads ? none : parameter;
  }
  return result;
}

}  // namespace fuse::bench::sass
