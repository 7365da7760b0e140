// SPDX-License-Identifier: Apache-2.0
#include "fuzz/minimise.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "fuzz/grow/random.hpp"
#include "ir/graph/infer.hpp"
#include "ir/graph/verify.hpp"
#include "passes/dead_code.hpp"

namespace fuse::fuzz {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;

/// Inputs and parameters that nothing reads become constants, which dead code takes away.
Graph without_unused_inputs(Graph graph) {
  std::vector<bool> used(graph.nodes.size());
  for (const ir::Output& output : graph.outputs) {
    used[output.node] = true;
    if (output.donated()) used[output.donor] = true;
  }
  for (auto id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    if (!used[id]) continue;
    for (const NodeId operand : graph[id].operands) used[operand] = true;
  }
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    Node& node = graph.nodes[id];
    if (used[id] || !std::holds_alternative<ir::NameAttr>(node.attr)) continue;
    node.op = ir::Op::constant;
    node.attr = ir::ConstantAttr{};
  }
  return graph;
}

/// The graph with every type inferred anew, or nothing where an op does not take its operands any more.
std::optional<Graph> rebuilt(Graph graph) {
  try {
    for (Node& node : graph.nodes) {
      std::vector<ir::Type> operands;
      for (const NodeId operand : node.operands) operands.push_back(graph[operand].type);
      const auto infer = [&](const ir::Type* declared) {
        return ir::infer_type(node.op, operands, node.attr, declared, SourceLocation());
      };
      try {
        node.type = infer(&node.type);
      } catch (const Error&) {
        node.type = infer(nullptr);
      }
    }
    graph = ir::dead_code(without_unused_inputs(graph));
    ir::verify(graph);
    return graph;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Every use of `from` reads `to`, an earlier node.
Graph redirected(Graph graph, NodeId from, NodeId to) {
  for (Node& node : graph.nodes) std::replace(node.operands.begin(), node.operands.end(), from, to);
  for (ir::Output& output : graph.outputs) {
    if (output.node == from) output.node = to;
  }
  return graph;
}

Dim replaced(const Dim& dim, std::int64_t from, std::int64_t to) { return dim.is(from) ? Dim(to) : dim; }

void replace_dims(std::vector<Dim>& dims, const std::function<Dim(const Dim&)>& by) {
  for (Dim& dim : dims) dim = by(dim);
}

Graph with_dims(Graph graph, const std::function<Dim(const Dim&)>& by) {
  for (Node& node : graph.nodes) {
    replace_dims(node.type.dims, by);
    if (auto* slice = std::get_if<ir::SliceAttr>(&node.attr)) {
      replace_dims(slice->starts, by);
      replace_dims(slice->limits, by);
    } else if (auto* pad = std::get_if<ir::PadAttr>(&node.attr)) {
      replace_dims(pad->low, by);
      replace_dims(pad->high, by);
    } else if (auto* sizes = std::get_if<ir::SizesAttr>(&node.attr)) {
      replace_dims(sizes->sizes, by);
    } else if (auto* custom = std::get_if<ir::CustomAttr>(&node.attr)) {
      replace_dims(custom->extents, by);
      custom->grid = by(custom->grid);
    } else if (auto* size = std::get_if<ir::DimAttr>(&node.attr)) {
      size->dim = by(size->dim);
    }
  }
  return graph;
}

class Minimiser {
 public:
  Minimiser(const Case& c, const Judge& judge, std::size_t most) : judge_(judge), most_(most) {
    best_.smallest = c;
    const Outcome outcome = judge_(c);
    best_.verdict = is_failure(outcome.verdict) ? outcome.verdict : Verdict::ok;
    best_.text = outcome.text;
  }

  Minimised run() {
    if (best_.verdict == Verdict::ok) return std::move(best_);
    for (std::string before, after = to_text(best_.smallest, ""); before != after && best_.tries < most_;) {
      before = after;
      simplify_options();
      drop_outputs();
      retreat_outputs();
      cut_nodes();
      bypass_nodes();
      shrink_extents();
      simplify_inputs();
      after = to_text(best_.smallest, "");
    }
    best_.ops =
        static_cast<std::size_t>(std::count_if(graph().nodes.begin(), graph().nodes.end(), [](const Node& n) {
          return !ir::info(n.op).has(ir::Trait::source);
        }));
    return std::move(best_);
  }

 private:
  const Graph& graph() const { return best_.smallest.program.graph; }

  bool accept(Case c) {
    if (best_.tries >= most_) return false;
    ++best_.tries;
    const Outcome outcome = judge_(c);
    if (outcome.verdict != best_.verdict) return false;
    best_.smallest = std::move(c);
    best_.text = outcome.text;
    return true;
  }
  bool accept(Graph changed) {
    std::optional<Graph> graph_ = rebuilt(std::move(changed));
    if (!graph_) return false;
    Case c = best_.smallest;
    c.program.graph = std::move(*graph_);
    return accept(std::move(c));
  }

  void simplify_options() {
    const auto with = [&](auto change) {
      Case c = best_.smallest;
      change(c);
      if (c.options == best_.smallest.options && c.program.bindings == best_.smallest.program.bindings)
        return;
      accept(std::move(c));
    };
    for (std::size_t i = 0;
         i < best_.smallest.program.bindings.size() && best_.smallest.program.bindings.size() > 1; ++i) {
      with([&](Case& c) { c.program.bindings = {c.program.bindings[i]}; });
    }
    with([](Case& c) { c.options.checked = false; });
    with([](Case& c) { c.options.shuffle_seed = 0; });
    with([](Case& c) { c.options.threads = 1; });
    with([](Case& c) { c.options.nests = false; });
    with([](Case& c) { c.options.choices_seed = 0; });
    with([](Case& c) { c.options.profile = "h200"; });
    with([](Case& c) { c.options.optimization = 2; });
  }

  void drop_outputs() {
    for (std::size_t i = graph().outputs.size(); i-- > 0;) {
      if (graph().outputs.size() == 1) return;
      Graph smaller = graph();
      smaller.outputs.erase(smaller.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      accept(std::move(smaller));
    }
  }

  /// An output is taken from an operand of what made it.
  void retreat_outputs() {
    for (std::size_t i = 0; i < graph().outputs.size(); ++i) {
      for (std::size_t k = 0; k < graph()[graph().outputs[i].node].operands.size(); ++k) {
        Graph earlier = graph();
        earlier.outputs[i].node = earlier[earlier.outputs[i].node].operands[k];
        if (!accept(std::move(earlier))) continue;
        --i;  // once more
        break;
      }
    }
  }

  /// An op becomes an input of its type.
  void cut_nodes() {
    for (NodeId id = 0; id < graph().nodes.size(); ++id) {
      const Node& node = graph()[id];
      if (node.op == ir::Op::input || node.op == ir::Op::constant) continue;
      const std::string name = unused_name();
      Graph smaller = graph();
      smaller.nodes[id] = {
          .op = ir::Op::input, .attr = ir::NameAttr{name}, .operands = {}, .type = node.type};
      const std::optional<Graph> valid = rebuilt(std::move(smaller));
      if (!valid) continue;
      const InputStyle styles[] = {{InputStyle::Kind::uniform, -2, 2},
                                   {InputStyle::Kind::whole, 0, 5},
                                   {InputStyle::Kind::special, -4, 4}};
      for (const InputStyle& style : styles) {
        Case c = best_.smallest;
        c.program.graph = *valid;
        c.program.inputs[name] = style;
        const std::size_t before = graph().nodes.size();
        if (!accept(std::move(c))) continue;
        // What it was made of is gone: the nodes have other numbers now.
        if (graph().nodes.size() < before) id = 0;
        break;
      }
    }
  }

  /// An op gives way to an operand of the same type.
  void bypass_nodes() {
    for (NodeId id = static_cast<NodeId>(graph().nodes.size()); id-- > 0;) {
      if (id >= graph().nodes.size()) continue;
      const std::vector<NodeId> operands = graph()[id].operands;
      for (const NodeId operand : operands) {
        if (graph()[operand].type == graph()[id].type && accept(redirected(graph(), id, operand))) break;
      }
    }
  }

  void shrink_extents() {
    if (!graph().assumptions.empty()) {
      Case c = best_.smallest;
      c.program.graph.assumptions.clear();
      accept(std::move(c));
    }
    for (const ir::Symbol& symbol : std::vector<ir::Symbol>(graph().symbols)) {
      for (const std::int64_t to :
           {std::int64_t{1}, std::int64_t{2}, best_.smallest.program.bindings[0].at(symbol.name)}) {
        Graph fixed =
            with_dims(graph(), [&](const Dim& dim) { return dim.substitute(symbol.name, Dim(to)); });
        std::erase_if(fixed.symbols, [&](const ir::Symbol& s) { return s.name == symbol.name; });
        const std::optional<Graph> valid = rebuilt(std::move(fixed));
        if (!valid) continue;
        Case c = best_.smallest;
        c.program.graph = *valid;
        for (DimValues& dims : c.program.bindings) dims.erase(symbol.name);
        if (accept(std::move(c))) break;
      }
    }
    std::set<std::int64_t, std::greater<>> extents;
    for (const Node& node : graph().nodes) {
      for (const Dim& dim : node.type.dims) {
        if (dim.is_constant() && dim.constant() > 1) extents.insert(dim.constant());
      }
    }
    for (const std::int64_t from : extents) {
      for (const std::int64_t to : std::set<std::int64_t>{1, 2, from / 4, from / 2, from - 1}) {
        if (to < 1 || to >= from) continue;
        if (accept(with_dims(graph(), [&](const Dim& dim) { return replaced(dim, from, to); }))) break;
      }
    }
  }

  void simplify_inputs() {
    for (const auto& [name, style] : std::map<std::string, InputStyle>(best_.smallest.program.inputs)) {
      const bool used = std::any_of(graph().nodes.begin(), graph().nodes.end(), [&](const Node& node) {
        const auto* named = std::get_if<ir::NameAttr>(&node.attr);
        return named && named->name == name;
      });
      if (!used) {
        best_.smallest.program.inputs.erase(name);
        continue;
      }
      const InputStyle plain{InputStyle::Kind::whole, 0, 5};
      if (style == plain) continue;
      Case c = best_.smallest;
      c.program.inputs[name] = plain;
      accept(std::move(c));
    }
    Graph bare = graph();
    bare.scopes.resize(1);
    bare.locations.resize(1);
    for (Node& node : bare.nodes) node.scope = node.location = 0;
    if (graph().scopes.size() + graph().locations.size() > 2) accept(std::move(bare));
  }

  std::string unused_name() const {
    std::set<std::string> names;
    for (const Node& node : graph().nodes) {
      if (const auto* named = std::get_if<ir::NameAttr>(&node.attr)) names.insert(named->name);
    }
    for (int i = 0;; ++i) {
      if (std::string name = "v" + std::to_string(i); !names.contains(name)) return name;
    }
  }

  const Judge& judge_;
  const std::size_t most_;
  Minimised best_;
};

}  // namespace

Outcome in_child(const Case& c, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) return {Verdict::crash, "cannot make a pipe", {}};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
    const Outcome outcome = run_alone(c);
    std::string text(1, static_cast<char>('0' + static_cast<int>(outcome.verdict)));
    text += outcome.text.substr(0, 60000);
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; child > 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return {Verdict::crash, "cannot start a process", {}};
  if (WIFSIGNALED(status)) {
    const int signal_number = WTERMSIG(status);
    if (signal_number == SIGALRM) return {Verdict::hang, "no end in " + std::to_string(seconds) + " s", {}};
    return {Verdict::crash, "signal " + std::to_string(signal_number), {}};
  }
  if (text.empty()) return {Verdict::crash, "exit status " + std::to_string(WEXITSTATUS(status)), {}};
  return {static_cast<Verdict>(text[0] - '0'), text.substr(1), {}};
}

Minimised minimise(const Case& c, const Judge& judge, std::size_t most_tries) {
  return Minimiser(c, judge, most_tries).run();
}

}  // namespace fuse::fuzz
