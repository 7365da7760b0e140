// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "embedded.hpp"
#include "json.hpp"

namespace fuse::bench {
namespace {

Case make_case(const std::string& builder, const std::string& dtype, const Json& dims, const Json& tags) {
  Case made{.name = fmt::format("{}.{}.{}", builder, dtype, fmt::join(dims.get<Extents>(), "x")),
            .builder = builder,
            .dims = dims.get<Extents>(),
            .tags = tags.get<std::vector<std::string>>()};
  const auto known = parse_dtype(dtype);
  if (!known) throw std::runtime_error(made.name + ": unknown dtype " + dtype);
  made.dtype = *known;
  if (const std::size_t axes = builder_of(builder).axes; made.dims.size() != axes) {
    throw std::runtime_error(fmt::format("{}: {} has {} dims", made.name, builder, axes));
  }
  return made;
}

}  // namespace

bool Case::tagged(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const Json list = Json::parse(cases_json());
  for (const Json& family : list.at("families")) {
    for (const Json& dtype : family.at("dtypes")) {
      for (const Json& dims : family.at("dims")) {
        cases.push_back(make_case(family.at("builder"), dtype, dims, family.at("tags")));
      }
    }
  }
  return cases;
}

}  // namespace fuse::bench
