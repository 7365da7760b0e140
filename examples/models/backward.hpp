// Gradients of a graph while it is built: a tape remembers how each op passes a gradient to its operands, and
// then runs from the loss to the weights.
//
// It emits the backward half of a training step as frameworks do. A product x W gives two products with
// transposed operands, x^T g and g W^T, and a weight that every time step uses adds up what the steps give:
// a ladder add(add(x2^T g2, x1^T g1), x0^T g0), last step first. Nothing is put side by side or merged here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <fuse/fuse.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model_layers.hpp"

namespace example {

class Tape;

/// A value that its tape knows. Operators on it build the op and record it.
struct Var {
  Tape* tape = nullptr;
  std::size_t place = 0;
  fuse::Tensor value{};
};

class Tape {
 public:
  /// Passes the gradient of a result to the operands, by give().
  using Pass = std::function<void(const fuse::Tensor& gradient)>;

  explicit Tape(fuse::Graph& graph) : graph_(graph) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  fuse::Graph& graph() { return graph_; }

  /// What follows is part of the scope, and so is what its gradients need, in a scope of that name.
  fuse::ScopeGuard scope(const std::string& name) {
    part_ = name;
    return graph_.scope(name);
  }

  /// A value that needs no gradient.
  Var given(const fuse::Tensor& value) { return add(value, false, {}); }
  /// A value whose gradient is wanted.
  Var wanted(const fuse::Tensor& value) { return add(value, true, {}); }

  Var made(const fuse::Tensor& value, const std::vector<Var>& from, Pass pass) {
    bool needed = false;
    for (const Var& operand : from) needed = needed || entries_[operand.place].needed;
    return add(value, needed, needed ? std::move(pass) : Pass{});
  }

  /// Adds `part()` to the gradient of `to`. Where none is needed, `part` is not called and builds no op.
  template <class Part>
  void give(const Var& to, const Part& part) {
    Entry& entry = entries_[to.place];
    if (!entry.needed) return;
    const fuse::Tensor more = part();
    entry.gradient = entry.gradient.valid() ? entry.gradient + more : more;
  }

  /// Runs from the loss, whose own gradient is 1 and no tensor, to all that it depends on.
  void run_back(const Var& loss) {
    const auto scope = graph_.scope("backward");
    std::optional<fuse::ScopeGuard> part;
    std::string name;
    for (std::size_t i = loss.place + 1; i-- > 0;) {
      const Entry& entry = entries_[i];
      if (!entry.pass || (i != loss.place && !entry.gradient.valid())) continue;
      if (name != entry.part) {
        part.reset();
        name = entry.part;
        if (!name.empty()) part.emplace(graph_.scope(name));
      }
      entry.pass(entry.gradient);
    }
  }

  /// Invalid where the loss does not depend on the value.
  const fuse::Tensor& gradient(const Var& of) const { return entries_[of.place].gradient; }

 private:
  struct Entry {
    bool needed = false;
    std::string part{};
    Pass pass{};
    fuse::Tensor gradient{};
  };

  Var add(const fuse::Tensor& value, bool needed, Pass pass) {
    entries_.push_back({.needed = needed, .part = part_, .pass = std::move(pass)});
    return {.tape = this, .place = entries_.size() - 1, .value = value};
  }

  fuse::Graph& graph_;
  std::vector<Entry> entries_;
  std::string part_;
};

/// The gradient of an operand that an op repeated to the shape of its result: summed over what was repeated.
inline fuse::Tensor unrepeated(const fuse::Tensor& gradient, const std::vector<fuse::Dim>& dims) {
  const std::vector<fuse::Dim> from = gradient.dims();
  const std::size_t lead = from.size() - dims.size();
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool repeated = i < lead || (dims[i - lead].constant() == 1 && from[i].constant() != 1);
    if (repeated) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.empty()) return gradient;
  const fuse::Tensor summed = fuse::sum(gradient, axes);
  return axes.size() == lead ? summed : fuse::reshape(summed, dims);
}

inline Var operator+(const Var& a, const Var& b) {
  return a.tape->made(a.value + b.value, {a, b}, [a, b](const fuse::Tensor& g) {
    a.tape->give(a, [&] { return unrepeated(g, a.value.dims()); });
    b.tape->give(b, [&] { return unrepeated(g, b.value.dims()); });
  });
}
inline Var operator-(const Var& a, const Var& b) {
  return a.tape->made(a.value - b.value, {a, b}, [a, b](const fuse::Tensor& g) {
    a.tape->give(a, [&] { return unrepeated(g, a.value.dims()); });
    b.tape->give(b, [&] { return unrepeated(-g, b.value.dims()); });
  });
}
inline Var operator*(const Var& a, const Var& b) {
  return a.tape->made(a.value * b.value, {a, b}, [a, b](const fuse::Tensor& g) {
    a.tape->give(a, [&] { return unrepeated(g * b.value, a.value.dims()); });
    b.tape->give(b, [&] { return unrepeated(g * a.value, b.value.dims()); });
  });
}
inline Var operator*(double k, const Var& x) {
  return x.tape->made(k * x.value, {x},
                      [k, x](const fuse::Tensor& g) { x.tape->give(x, [&] { return k * g; }); });
}
inline Var operator-(double k, const Var& x) {
  return x.tape->made(k - x.value, {x}, [x](const fuse::Tensor& g) { x.tape->give(x, [&] { return -g; }); });
}

inline Var matmul(const Var& a, const Var& b, bool transpose_a = false, bool transpose_b = false) {
  const fuse::Tensor product =
      fuse::matmul(a.value, b.value, {.transpose_a = transpose_a, .transpose_b = transpose_b});
  return a.tape->made(product, {a, b}, [=](const fuse::Tensor& g) {
    a.tape->give(a, [&] {
      return transpose_a ? fuse::matmul(b.value, g, {.transpose_a = transpose_b, .transpose_b = true})
                         : fuse::matmul(g, b.value, {.transpose_b = !transpose_b});
    });
    b.tape->give(b, [&] {
      return transpose_b ? fuse::matmul(g, a.value, {.transpose_a = true, .transpose_b = transpose_a})
                         : fuse::matmul(a.value, g, {.transpose_a = !transpose_a});
    });
  });
}

inline Var sigmoid(const Var& x) {
  const fuse::Tensor y = sigmoid(x.value);
  return x.tape->made(y, {x},
                      [x, y](const fuse::Tensor& g) { x.tape->give(x, [&] { return g * (y * (1 - y)); }); });
}
inline Var tanh(const Var& x) {
  const fuse::Tensor y = fuse::tanh(x.value);
  return x.tape->made(y, {x},
                      [x, y](const fuse::Tensor& g) { x.tape->give(x, [&] { return g * (1 - y * y); }); });
}
inline Var softmax(const Var& x, std::int64_t axis) {
  const fuse::Tensor y = fuse::softmax(x.value, axis);
  return x.tape->made(y, {x}, [x, y, axis](const fuse::Tensor& g) {
    x.tape->give(x, [&] { return y * (g - fuse::sum(g * y, {axis}, {.keep_dims = true})); });
  });
}

/// The axis stays, with extent 1.
inline Var sum(const Var& x, std::int64_t axis) {
  return x.tape->made(fuse::sum(x.value, {axis}, {.keep_dims = true}), {x}, [x](const fuse::Tensor& g) {
    x.tape->give(x, [&] { return fuse::broadcast_to(g, x.value.dims()); });
  });
}

inline Var reshape(const Var& x, const std::vector<fuse::Dim>& dims) {
  return x.tape->made(fuse::reshape(x.value, dims), {x}, [x](const fuse::Tensor& g) {
    x.tape->give(x, [&] { return fuse::reshape(g, x.value.dims()); });
  });
}

inline Var slice(const Var& x, std::int64_t axis, std::int64_t start, std::int64_t limit) {
  return x.tape->made(fuse::slice(x.value, axis, start, limit), {x}, [=](const fuse::Tensor& g) {
    x.tape->give(x, [&] {
      std::vector<fuse::Dim> low(static_cast<std::size_t>(x.value.rank()), 0), high = low;
      low[static_cast<std::size_t>(axis)] = start;
      high[static_cast<std::size_t>(axis)] = x.value.dim(axis) - limit;
      return fuse::pad(g, 0, low, high);
    });
  });
}

inline Var concat(const std::vector<Var>& parts, std::int64_t axis) {
  std::vector<fuse::Tensor> values;
  for (const Var& part : parts) values.push_back(part.value);
  return parts.front().tape->made(fuse::concat(values, axis), parts, [=](const fuse::Tensor& g) {
    fuse::Dim start = 0;
    for (const Var& part : parts) {
      const fuse::Dim limit = start + part.value.dim(axis);
      part.tape->give(part, [&] { return fuse::slice(g, axis, start, limit); });
      start = limit;
    }
  });
}

/// The mean negative log-likelihood of targets [T, B] under the logits [B, vocabulary] of T steps. Its
/// gradient is known as a whole: (softmax(logits) - one at the target) / (T B).
inline Var mean_cross_entropy(const std::vector<Var>& logits, const fuse::Tensor& targets) {
  const double share = 1 / static_cast<double>((targets.dim(0) * targets.dim(1)).constant());
  fuse::Tensor total;
  for (std::size_t t = 0; t < logits.size(); ++t) {
    const fuse::Tensor labels = at(targets, 0, static_cast<std::int64_t>(t));
    const fuse::Tensor part = fuse::sum(fuse::cross_entropy(logits[t].value, labels));
    total = total.valid() ? total + part : part;
  }
  return logits.front().tape->made(total * share, logits, [=](const fuse::Tensor&) {
    for (std::size_t t = logits.size(); t-- > 0;) {
      const fuse::Tensor labels =
          fuse::reshape(at(targets, 0, static_cast<std::int64_t>(t)), {targets.dim(1), 1});
      logits[t].tape->give(logits[t], [&] {
        const fuse::Tensor likely = fuse::softmax(logits[t].value);
        const fuse::Tensor classes = logits[t].tape->graph().iota(targets.dtype(), likely.dims(), 1);
        const fuse::Tensor less = likely - 1;
        return fuse::select(classes == labels, less, likely) * share;
      });
    }
  });
}

}  // namespace example
