// SPDX-License-Identifier: Apache-2.0
#include "compile/pipeline/fault.hpp"

#include "compile/pipeline/experiments.hpp"
#include "os/environment.hpp"

namespace fuse {

std::string to_string(const Fault& fault) {
  return std::visit([](const auto& each) { return to_string(each); }, fault);
}

std::optional<Fault> parse_fault(std::string_view text) {
  if (const auto fault = kernel::parse_fault(text)) return fault;
  if (auto rewrite = ir::parse_wrong_rewrite(text)) return rewrite;
  return std::nullopt;
}

std::string fault_text(const CompileOptions& options) {
  const std::string& asked = experiments_of(options).fault;
  return asked.empty() ? value_of(Variable::fault) : asked;
}

}  // namespace fuse
