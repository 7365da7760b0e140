// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fuse/dim_values.hpp>
#include <stdexcept>

namespace fuse {
inline namespace v0 {

DimValues::const_iterator DimValues::place(std::string_view name) const {
  const_iterator at = begin();
  while (at != end() && at->first < name) ++at;
  return at;
}

DimValues::const_iterator DimValues::find(std::string_view name) const {
  const const_iterator at = place(name);
  return at != end() && at->first == name ? at : end();
}

std::int64_t DimValues::at(std::string_view name) const {
  const const_iterator found = find(name);
  if (found == end()) throw std::out_of_range(fmt::format("dim '{}' has no value", name));
  return found->second;
}

std::pair<DimValues::iterator, bool> DimValues::try_emplace(std::string_view name, std::int64_t value) {
  const auto at = values_.begin() + (place(name) - begin());
  if (at != values_.end() && at->first == name) return {at, false};
  return {values_.emplace(at, name, value), true};
}

void DimValues::insert_or_assign(std::string_view name, std::int64_t value) {
  const auto [at, fresh] = try_emplace(name, value);
  if (!fresh) at->second = value;
}

void DimValues::erase(std::string_view name) {
  const const_iterator at = find(name);
  if (at != end()) values_.erase(at);
}

bool DimValues::operator==(const DimValues&) const = default;
std::strong_ordering DimValues::operator<=>(const DimValues&) const = default;

}  // namespace v0
}  // namespace fuse
