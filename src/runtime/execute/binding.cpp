// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/binding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::runtime {
namespace {

void check_range(const ir::Symbol& symbol, std::int64_t value) {
  if (symbol.range.min <= value && value <= symbol.range.max) return;
  throw Error({.code = ErrorCode::invalid_extent,
               .message = fmt::format("dim {} = {} is outside of its range [{}, {}]", symbol.name, value,
                                      symbol.range.min, symbol.range.max),
               .hint = "give a value in the range, or declare a larger one with Graph::dim"});
}

void check_known(const Signature& signature, const DimValues& values) {
  for (const auto& [name, value] : values) {
    if (std::ranges::find(signature.symbols, name, &ir::Symbol::name) != signature.symbols.end()) continue;
    std::vector<std::string> known;
    for (const ir::Symbol& symbol : signature.symbols) known.push_back(symbol.name);
    throw Error(
        {.code = ErrorCode::unknown_name,
         .message = fmt::format("graph '{}' has no dim {}", signature.name, in_quotes(name)),
         .hint = known.empty() ? "it has no dims: prepare() takes no values" : nearest_names(known, name)});
  }
}

void check_bound(const Signature& signature, const DimValues& values) {
  for (const Signature::Need& need : signature.needs) {
    if (values.contains(need.symbol)) continue;
    throw Error({.code = ErrorCode::unbound,
                 .message = fmt::format("dim {} has no value; {} needs it", need.symbol, need.value),
                 .hint = fmt::format("prepare({{{{\"{}\", ...}}}})", need.symbol)});
  }
}

class OpCheck {
 public:
  OpCheck(const Signature::Op& op, const Binding& binding) : op_(op), binding_(binding) {}

  /// `shape` is memory for it, so that not each op asks for some.
  void run(std::vector<std::int64_t>& shape) const {
    shape.clear();
    try {
      for (const Dim& dim : op_.dims) shape.push_back(binding_.value(dim));
      for (const Dim& dim : op_.other_dims) binding_.value(dim);
    } catch (const Error& error) {
      fail(op_.dims, error.info().message, false);
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) {
        fail({op_.dims[i]}, fmt::format("extent {} of the result is {}", op_.dims[i].to_string(), shape[i]));
      }
    }
    const auto count = checked_element_count(shape, op_.dtype);
    if (!count) {
      fail(op_.dims, fmt::format("the bytes of a result of type {} overflow 63 bits", op_.type));
    }
    check_slices();
    if (*count > 0 && op_.filled) check_filled(*count);
  }

 private:
  [[noreturn]] void fail(const std::vector<Dim>& dims, std::string message, bool add_values = true,
                         std::string hint = {}) const {
    if (add_values) message += binding_.at(dims);
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = std::move(message),
                 .op = op_.op,
                 .shapes = op_.shapes,
                 .location = op_.location,
                 .hint = std::move(hint)});
  }

  /// A gather clamps its indices into a range, argmax and argmin find an element: there has to be one.
  void check_filled(std::int64_t count) const {
    const Dim& extent = op_.filled->extent;
    if (binding_.value(extent) != 0) return;
    fail({extent},
         op_.filled->gathered
             ? fmt::format("axis {} is empty and the result has {} elements: there is nothing to gather",
                           op_.filled->axis, count)
             : fmt::format("the reduced dim {} is empty and the result has {} elements", op_.filled->axis,
                           count),
         true, extent.name().empty() ? std::string() : fmt::format("give {} a minimum of 1", extent.name()));
  }

  void check_slices() const {
    for (std::size_t i = 0; i < op_.slices.size(); ++i) {
      const Signature::Slice& slice = op_.slices[i];
      const std::int64_t start = binding_.value(slice.start), limit = binding_.value(slice.limit);
      const std::int64_t extent = binding_.value(slice.extent);
      if (0 <= start && start <= limit && limit <= extent) continue;
      fail({slice.start, slice.limit, slice.extent},
           fmt::format("elements [{}, {}) of axis {}, which has {}", start, limit, i, extent));
    }
  }

  const Signature::Op& op_;
  const Binding& binding_;
};

}  // namespace

Binding::Binding(const Signature& signature, const DimValues& values) : values_(values) {
  check_known(signature, values);
  for (const ir::Symbol& symbol : signature.symbols) {
    if (const auto found = values.find(symbol.name); found != values.end())
      check_range(symbol, found->second);
  }
  check_bound(signature, values);
}

std::int64_t Binding::value(const Dim& dim) const {
  const auto* const expression = poly_of(dim);
  if (!expression) return dim.constant();
  Known& known =
      known_[reinterpret_cast<std::uintptr_t>(expression) / alignof(std::max_align_t) % known_.size()];
  if (poly_of(known.dim) == expression) return known.value;
  try {
    const std::int64_t value = dim.evaluate([&](std::string_view name) {
      const auto found = values_.find(name);
      if (found != values_.end()) return found->second;
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = fmt::format("'{}' in {} is no symbol of the graph", name, dim.to_string())});
    });
    known = {dim, value};
    return value;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_extent) throw;
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = fmt::format("{}: {}{}", dim.to_string(), error.info().message, at({dim}))});
  }
}

std::vector<std::int64_t> Binding::shape(const std::vector<Dim>& dims) const {
  std::vector<std::int64_t> shape;
  shape.reserve(dims.size());
  for (const Dim& dim : dims) shape.push_back(value(dim));
  return shape;
}

std::string Binding::at(const std::vector<Dim>& dims) const {
  std::vector<std::string_view> names;
  std::vector<Dim> symbols;
  for (const Dim& dim : dims) {
    for (const Dim& symbol : dim.symbols()) symbols.push_back(symbol);
  }
  for (const Dim& symbol : symbols) names.push_back(symbol.name());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text;
  for (const std::string_view name : names) {
    const auto found = values_.find(name);
    if (found == values_.end()) continue;
    text += fmt::format("{}{} = {}", text.empty() ? " at " : ", ", name, found->second);
  }
  return text;
}

void check_extents(const Signature& signature, const Binding& binding) {
  std::vector<std::int64_t> shape;
  for (const Signature::Op& op : signature.ops) OpCheck(op, binding).run(shape);
}

void check_extents(const Signature::Op& op, const Binding& binding) {
  std::vector<std::int64_t> shape;
  OpCheck(op, binding).run(shape);
}

void check_guards(const std::vector<ir::Guard>& guards, const Binding& binding) {
  for (const ir::Guard& guard : guards) {
    const auto& [kind, left, right] = guard.relation;
    const auto refuse = [&](ErrorCode code, std::string message, std::string hint) {
      throw Error(
          {.code = code, .message = std::move(message), .location = guard.location, .hint = std::move(hint)});
    };
    for (const Dim& side : {left, right}) {
      for (const Dim& symbol : side.symbols()) {
        if (binding.values().contains(symbol.name())) continue;
        refuse(ErrorCode::unbound,
               fmt::format("dim {} has no value; the guard {} needs it", symbol.name(),
                           guard.relation.to_string()),
               fmt::format("prepare({{{{\"{}\", ...}}}})", symbol.name()));
      }
    }
    const std::int64_t a = binding.value(left), b = binding.value(right);
    if (guard.relation.holds(a, b)) continue;
    refuse(ErrorCode::violated_guard,
           fmt::format("the guard {} does not hold: its sides are {} and {}{}", guard.relation.to_string(), a,
                       b, binding.at({left, right})),
           guard.needed_by.empty() ? "the graph assumes it" : guard.needed_by + " needs it");
  }
}

std::uint32_t version_at(const schedule::VersionTable& table, const Binding& binding) {
  return version_for(table, [&](const Dim& dim) {
    try {
      return binding.value(dim);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_extent) throw;
      return std::numeric_limits<std::int64_t>::max();
    }
  });
}

}  // namespace fuse::runtime
