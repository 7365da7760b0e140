// SPDX-License-Identifier: Apache-2.0
#include "report/schema_check.hpp"

#include <algorithm>
#include <stdexcept>

namespace fuse::bench {
namespace {

bool has_type(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  void check(const Json& value, const Json& schema, const std::string& at) {
    for (const auto& [key, rule] : schema.items()) {
      if (key == "$ref") {
        check(value, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), at);
      } else if (key == "type") {
        check_type(value, rule, at);
      } else if (key == "const") {
        if (value != rule) wrong(at, "is " + value.dump() + ", not " + rule.dump());
      } else if (key == "enum") {
        if (std::find(rule.begin(), rule.end(), value) == rule.end())
          wrong(at, "is " + value.dump() + ", none of " + rule.dump());
      } else if (key == "minimum") {
        if (value.is_number() && value < rule) wrong(at, "is " + value.dump() + ", less than " + rule.dump());
      } else if (key == "items") {
        for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
          check(value[i], rule, at + '[' + std::to_string(i) + ']');
        }
      } else if (key == "required") {
        for (const Json& name : rule) {
          if (value.is_object() && !value.contains(name.get<std::string>()))
            wrong(at, "misses " + name.get<std::string>());
        }
      } else if (key == "properties") {
        check_members(value, schema, at);
      } else if (key != "additionalProperties" && key != "description" && key != "title" &&
                 key != "$schema" && key != "$defs") {
        throw std::runtime_error("bench/schema.json: unknown keyword " + key);
      }
    }
  }

  std::vector<std::string> errors;

 private:
  void wrong(const std::string& at, const std::string& what) {
    errors.push_back((at.empty() ? "the file" : at) + ": " + what);
  }

  void check_type(const Json& value, const Json& rule, const std::string& at) {
    const Json types = rule.is_array() ? rule : Json::array({rule});
    const bool any =
        std::any_of(types.begin(), types.end(), [&](const Json& type) { return has_type(value, type); });
    if (!any) wrong(at, "is a " + std::string(value.type_name()) + ", not " + rule.dump());
  }

  void check_members(const Json& value, const Json& schema, const std::string& at) {
    if (!value.is_object()) return;
    const Json& known = schema.at("properties");
    for (const auto& [name, member] : value.items()) {
      const std::string path = at.empty() ? name : at + '.' + name;
      if (known.contains(name)) {
        check(member, known.at(name), path);
      } else if (!schema.value("additionalProperties", true)) {
        wrong(path, "is unknown");
      }
    }
  }

  const Json& root_;
};

}  // namespace

std::vector<std::string> schema_errors(const Json& value, const Json& schema) {
  Checker checker(schema);
  checker.check(value, schema, "");
  return checker.errors;
}

}  // namespace fuse::bench
