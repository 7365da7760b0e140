// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "bench_arguments.hpp"
#include "report/bench_json.hpp"
#include "report/embedded.hpp"

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

/// A selection is a tag of cases by name, of any families.
void select(std::vector<Case>& cases, const std::string& tag, const std::string& name) {
  bool any = false;
  for (Case& c : cases) {
    if (c.name != name || c.tagged("smoke")) continue;
    c.tags.push_back(tag);
    any = true;
  }
  if (!any) throw std::runtime_error(fmt::format("selection {} of bench/cases.json: no case {}", tag, name));
}

bool fits(const Case& c, const std::string& part, const std::vector<Case>& cases) {
  const bool is_name =
      std::any_of(cases.begin(), cases.end(), [&](const Case& other) { return other.name == part; });
  if (is_name) return c.name == part;
  return part == "cases" || c.tagged(part) || c.name.find(part) != std::string::npos;
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
  for (const auto& [tag, names] : list.at("selections").items()) {
    for (const Json& name : names) select(cases, tag, name);
  }
  return cases;
}

std::vector<Case> cpu_cases() {
  std::vector<Case> cases;
  const Json list = Json::parse(cases_json());
  for (const Json& family : list.at("cpu_families")) {
    for (const Json& builder : family.at("builders")) {
      for (const Json& dtype : family.at("dtypes")) {
        for (const Json& dims : family.at("dims")) {
          cases.push_back(make_case(builder, dtype, dims, family.at("tags")));
        }
      }
    }
  }
  return cases;
}

std::vector<Case> cases_that_fit(const std::string& filter, bool smoke) {
  const std::vector<Case> cases = all_cases();
  const std::vector<std::string> parts = parts_of(filter);
  std::vector<Case> fitting;
  for (const Case& c : cases) {
    if (c.tagged("smoke") == smoke && std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
          return fits(c, part, cases);
        }))
      fitting.push_back(c);
  }
  return fitting;
}

}  // namespace fuse::bench
