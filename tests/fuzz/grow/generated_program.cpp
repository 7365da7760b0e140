// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/generated_program.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <fuse/device.hpp>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "base/access.hpp"
#include "fuzz/grow/custom_kernel.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/judge/error_rules.hpp"
#include "ir/text/print.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::fuzz {
namespace {

using runtime::HostTensor;

constexpr std::array<std::string_view, 4> kinds = {"uniform", "whole", "spread", "special"};

// FNV-1a: std::hash may differ between libraries.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return value;
}

void set_special(HostTensor& tensor, std::int64_t i, Random& random) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_floating(tensor.dtype)) {
    const double least = std::fabs(floor_to(tensor.dtype, -1e-320));
    const double greatest = greatest_finite(tensor.dtype);
    tensor.set(i, random.pick({infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 0.0, -0.0, 1.0,
                               -1.0, least, -least, greatest, -greatest, 3 * least, 0.5, 2.5}));
  } else {
    const auto [low, high] = whole<std::int64_t>(tensor.dtype);
    tensor.set_int(i, random.pick({low, high, std::int64_t{0}, std::int64_t{1}, low + 1, high - 1,
                                   std::max<std::int64_t>(low, -1), std::int64_t{7}}));
  }
}

void set_element(HostTensor& tensor, std::int64_t i, const InputStyle& style, Random& random) {
  using Kind = InputStyle::Kind;
  const bool real = is_floating(tensor.dtype);
  if (kind_of(tensor.dtype) == DTypeKind::boolean) return tensor.set_int(i, random.chance(0.5));
  if (style.kind == Kind::special && random.chance(0.4)) return set_special(tensor, i, random);
  const double low = style.kind == Kind::special ? -4 : style.low,
               high = style.kind == Kind::special ? 4 : style.high;
  if (style.kind == Kind::spread) {
    if (!real) return tensor.set_int(i, static_cast<std::int64_t>(random.bits()) >> random.below(64));
    const double magnitude = std::ldexp(
        0.5 + 0.5 * random.unit(),
        static_cast<int>(random.between(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high))));
    return tensor.set(i, random.chance(0.5) ? magnitude : -magnitude);
  }
  if (style.kind == Kind::whole || !real) {
    // Both ends are far inside of int64: a style is written by the generator.
    return tensor.set_int(i, random.between(static_cast<std::int64_t>(std::floor(low)),
                                            static_cast<std::int64_t>(std::floor(high))));
  }
  tensor.set(i, low + (high - low) * random.unit());
}

}  // namespace

std::string to_string(const InputStyle& style) {
  return fmt::format("{} {} {}", kinds[static_cast<std::size_t>(style.kind)], style.low, style.high);
}

InputStyle parse_style(std::string_view text) {
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  std::string kind;
  InputStyle style;
  if (in >> kind >> style.low >> style.high) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] == kind) {
        style.kind = static_cast<InputStyle::Kind>(i);
        return style;
      }
    }
  }
  throw std::runtime_error("not the style of an input: '" + std::string(text) + "'");
}

HostTensor make_input(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed,
                      std::string_view name, const InputStyle& style) {
  HostTensor tensor = HostTensor::make(dtype, shape);
  Random random(mix(seed) ^ hash(name));
  const std::int64_t count = tensor.element_count();
  for (std::int64_t i = 0; i < count; ++i) set_element(tensor, i, style, random);
  return tensor;
}

runtime::Values make_inputs(const Program& program, const DimValues& dims) {
  runtime::Values values;
  for (const ir::Node& node : program.graph.nodes) {
    const auto* named = std::get_if<ir::NameAttr>(&node.attr);
    if (!named) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : node.type.dims) {
      shape.push_back(dim.evaluate([&](std::string_view name) { return dims.find(name)->second; }));
    }
    const auto style = program.inputs.find(named->name);
    values.emplace(named->name, make_input(node.type.dtype, shape, program.inputs_seed, named->name,
                                           style == program.inputs.end() ? InputStyle{} : style->second));
  }
  return values;
}

bool is_on_cpu(const RunOptions& options) { return options.profile.starts_with("cpu"); }

std::string machine_of(const RunOptions& options) {
  const std::size_t blank = options.profile.find(' ');
  return blank == std::string::npos ? "" : options.profile.substr(blank + 1);
}

Case on_cpu(Case c, const std::string& device) {
  RunOptions& options = c.options;
  options.profile = device;
  options.checked = options.nests = false;
  options.shuffle_seed = options.choices_seed = 0;
  options.rules.clear();
  return c;
}

Target target_of(const RunOptions& options) {
  return is_on_cpu(options) ? backend_of(Device::cpu({.machine = machine_of(options)}))->target()
                            : target_profile(options.profile);
}

std::string to_string(const RunOptions& o) {
  std::string text =
      fmt::format("profile={} checked={} threads={} shuffle={} choices={} optimization={}", o.profile,
                  o.checked ? 1 : 0, o.threads, o.shuffle_seed, o.choices_seed, o.optimization);
  if (o.nests) text += " nests=1";
  if (!o.fault.empty()) text += " fault=" + o.fault;
  if (!o.rules.empty()) text += " rules=" + o.rules;
  if (o.runs != 1) text += fmt::format(" runs={}", o.runs);
  if (o.graph_mode) text += " graph_mode=1";
  if (o.together) text += " together=1";
  if (o.saved) text += " saved=1";
  if (o.versions != 1) text += fmt::format(" versions={}", o.versions);
  return text;
}

RunOptions parse_options(std::string_view text) {
  RunOptions options;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals),
                      value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "profile") {
      options.profile = value;
    } else if (key == "checked") {
      options.checked = value == "1";
    } else if (key == "threads") {
      options.threads = std::stoi(value);
    } else if (key == "shuffle") {
      options.shuffle_seed = std::stoull(value);
    } else if (key == "choices") {
      options.choices_seed = std::stoull(value);
    } else if (key == "nests") {
      options.nests = value == "1";
    } else if (key == "optimization") {
      options.optimization = std::stoi(value);
    } else if (key == "fault") {
      options.fault = value;
    } else if (key == "rules") {
      options.rules = value;
    } else if (key == "runs") {
      options.runs = std::stoi(value);
    } else if (key == "graph_mode") {
      options.graph_mode = value == "1";
    } else if (key == "together") {
      options.together = value == "1";
    } else if (key == "saved") {
      options.saved = value == "1";
    } else if (key == "versions") {
      options.versions = std::stoi(value);
    } else {
      throw std::runtime_error("unknown option '" + word + "'");
    }
  }
  return options;
}

std::string to_text(const Case& c, const std::string& comment) {
  std::string text;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  text += "#! options " + to_string(c.options) + "\n";
  text += fmt::format("#! inputs_seed {}\n", c.program.inputs_seed);
  for (const ir::Node& node : c.program.graph.nodes) {
    const auto* named = std::get_if<ir::NameAttr>(&node.attr);
    const auto style = named ? c.program.inputs.find(named->name) : c.program.inputs.end();
    if (style != c.program.inputs.end()) {
      text += fmt::format("#! input {} {}\n", to_string(style->second), style->first);
    }
  }
  for (const DimValues& dims : c.program.bindings) {
    text += "#! dims";
    for (const auto& [name, value] : dims) text += fmt::format(" {}={}", name, value);
    text += "\n";
  }
  return text + ir::print(c.program.graph);
}

Case parse_case(std::string_view text, const std::string& file) {
  Case c;
  c.program.graph = ir::parse(text, file);
  attach_references(c.program.graph);
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, 3, "#! ") != 0) continue;
    std::istringstream words(line.substr(3));
    std::string what;
    words >> what;
    std::string rest;
    std::getline(words >> std::ws, rest);
    if (what == "options") {
      c.options = parse_options(rest);
    } else if (what == "inputs_seed") {
      c.program.inputs_seed = std::stoull(rest);
    } else if (what == "input") {
      std::istringstream fields(rest);
      std::string kind, low, high, name;
      fields >> kind >> low >> high >> std::ws;
      std::getline(fields, name);
      c.program.inputs[name] = parse_style(kind + ' ' + low + ' ' + high);
    } else if (what == "dims") {
      DimValues dims;
      std::istringstream fields(rest);
      for (std::string field; fields >> field;) {
        const std::size_t equals = field.find('=');
        dims[field.substr(0, equals)] = std::stoll(field.substr(equals + 1));
      }
      c.program.bindings.push_back(std::move(dims));
    } else {
      throw std::runtime_error(file + ": unknown line '" + line + "'");
    }
  }
  if (c.program.bindings.empty()) c.program.bindings.emplace_back();
  return c;
}

}  // namespace fuse::fuzz
