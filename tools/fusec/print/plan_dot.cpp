// SPDX-License-Identifier: Apache-2.0
#include "fusec/print/plan_dot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fusec/compiled_graph.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::fusec {
namespace {

using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Stage;

/// How a value reaches what reads it.
enum class Way { thread, shared, cluster, cached, memory };

struct WayStyle {
  const char* color;
  const char* line;
  const char* sign;  // in the legend, HTML
  const char* meaning;
};

WayStyle style_of(Way way) {
  switch (way) {
    case Way::thread:
      return {"#4b5563", "penwidth=1", "&#9472;&#9472;&#9654;", "stays with its thread (local)"};
    case Way::shared:
      return {"#c2410c", "penwidth=2", "&#9473;&#9473;&#9654;",
              "a total that a warp or a block shares (regional)"};
    case Way::cluster:
      return {"#9333ea", "penwidth=2", "&#9473;&#9473;&#9654;",
              "a total that the blocks of a cluster share (cluster)"};
    case Way::cached:
      return {"#15803d", "penwidth=1.5, style=dashed", "&#9476;&#9476;&#9654;",
              "cached by its thread for a later pass"};
    case Way::memory:
      return {"#1d4ed8", "penwidth=3", "<b>&#9473;&#9473;&#9654;</b>", "through global memory (global)"};
  }
  return {};
}

struct Node {
  std::string name{}, attributes{};
};

/// A kernel, a launch or a pass: a frame around nodes and further boxes.
struct Box {
  std::string title{};
  std::vector<Node> nodes{};
  std::vector<Box> boxes{};
};

/// `line_end`: "\\n" centres each line, "\\l" starts it at the left.
std::string dot_string(std::string_view text, std::string_view line_end = "\\n") {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    c == '\n' ? result.append(line_end) : result.append(1, c);
  }
  return result + '"';
}

std::string dims_text(const ir::Type& type) {
  const std::string text = ir::to_string(type);
  return text.substr(text.find('['));
}

class PlanPainter {
 public:
  explicit PlanPainter(const Compiled& compiled) : compiled_(compiled), graph_(compiled.graph) {
    for (const schedule::Step& step : compiled.plan.setup) note_step(step, true);
    for (const schedule::Step& step : compiled.plan.steps) note_step(step, false);
  }

  std::string run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (ir::is_given(graph_[id])) paint_given(id);
    }
    for (const schedule::Segment& segment : compiled_.partition.segments) {
      const bool kernel = segment.kind == schedule::Segment::Kind::kernel;
      kernel ? paint_kernel(segment, first_schedule(compiled_, segment_)) : paint_library_call(segment);
      ++segment_;
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) paint_output(i);
    return text();
  }

 private:
  /// Of one launch: where its values are, as names of nodes.
  struct Launch {
    std::string name{};                ///< begins its nodes' names
    std::span<const NodeId> inputs{};  ///< that it reads
    std::vector<schedule::CachedValue> cached{};
    int elements_per_thread = 0;                ///< elements per thread that it caches
    Way total = Way::shared;                    ///< how a reduction's total reaches what reads it
    std::vector<bool> is_reduced{};             ///< of each dim of a row's elements
    std::map<NodeId, std::string> parts{};      ///< what another launch left in memory
    std::map<NodeId, std::string> totals{};     ///< reductions that are done
    std::map<NodeId, std::string> rows{};       ///< what is the same for a row: computed once
    std::map<NodeId, std::string> registers{};  ///< what is cached, once its first pass is painted
  };
  struct Visit {
    NodeId node = 0;
    bool once_a_row = false;
  };

  void note_step(const schedule::Step& step, bool setup) {
    for (const NodeId id : step.nodes) {
      steps_.emplace(id, &step);
      if (setup) setup_.insert(id);
    }
  }

  // Segments
  // -------------------------------------------------------------------------------------------------

  void paint_kernel(const schedule::Segment& segment, std::size_t index) {
    const schedule::Schedule& schedule = compiled_.schedules[index];
    const std::uint32_t first = compiled_.first_kernel[index];
    const KernelSchedule::Role role = schedule.kernels.back().role;
    const bool horizontal = role == KernelSchedule::Role::horizontal,
               regional = role == KernelSchedule::Role::regional;
    Box box;
    std::size_t launches = 0;
    for (const schedule::PhaseSchedule& phase : schedule.phases) {
      const bool passes =
          splits_stages(phase.computes, phase.choices);  // which are painted as what they are together
      for (const KernelSchedule& launch : phase.kernels) {
        if (launch.role == KernelSchedule::Role::cooperative) continue;
        if (!passes || launch.section == 0) {
          box.boxes.push_back(launch_box(phase, launch, launches));
          box.boxes.back().title =
              horizontal ? fmt::format("{}, blocks {}", loops_text(launch), launch.grid.to_string())
              : regional
                  ? fmt::format("{}, {} results per block", loops_text(launch), launch.results.to_string())
                  : title_of(launch, first + static_cast<std::uint32_t>(launches));
        }
        ++launches;
      }
    }
    if (horizontal) {
      box.title = title_of(schedule.kernels.back(), first) + "\na range of its blocks each";
    } else if (regional) {
      box.title = title_of(schedule.kernels.back(), first) + "\nblock barriers between";
    } else if (role == KernelSchedule::Role::cooperative) {
      box.title = title_of(schedule.kernels.back(), first + static_cast<std::uint32_t>(launches)) +
                  "\nall of it in one kernel, grid barriers between";
    } else if (launches > 1) {
      box.title = fmt::format("{} launches,\none after the other", launches);
    }
    if (box.boxes.size() == 1 && launches == 1) box = Box(std::move(box.boxes[0]));
    add_segment(segment, std::move(box));
  }

  std::string title_of(const KernelSchedule& launch, std::uint32_t kernel) const {
    return fmt::format("{}\n{}, grid {}, block {}", compiled_.source.kernels[kernel].name, loops_text(launch),
                       launch.grid.to_string(), launch.block_threads);
  }

  Box launch_box(const schedule::PhaseSchedule& phase, const KernelSchedule& kernel, std::size_t index) {
    const schedule::Phase& computes = phase.computes;
    const bool splits = splits_stages(computes, phase.choices);  // and is painted with all passes
    const bool combines = !splits && kernel.role == KernelSchedule::Role::combine;
    Launch launch{.name = fmt::format("k{}_{}", segment_, index), .inputs = computes.inputs};
    launch.elements_per_thread = phase.elements_per_thread;
    if (splits) launch.total = phase.choices.cluster() > 1 ? Way::cluster : Way::memory;
    if (!combines) launch.cached = phase.cached;
    const ir::Node& dominant = graph_[schedule::dominant(computes)];
    if (info(dominant.op).relation == ir::Relation::reduce) {
      launch.is_reduced = schedule::loop_shape(graph_, dominant).is_reduced;
    }
    const schedule::Section& section = phase.sections[kernel.section];
    std::vector<Stage> stages = splits ? computes.stages : section.walks;
    if (combines) {
      stages = stages_over_partials(section);
      for (const Stage& stage : section.combines) launch.parts[stage.root] = stored_.at(stage.root);
    }
    Box box;
    const bool several = !combines && last_pass(stages) > 0;  // parts of columns take no walk over rows
    for (int pass = 0; pass <= last_pass(stages); ++pass) {
      if (several) box.boxes.push_back({fmt::format("pass {}", pass), {}, {}});
      paint_pass(launch, stages, pass, several ? box.boxes.back() : box);
    }
    return box;
  }

  /// A GEMM with its epilogue, or a user's kernel.
  void paint_library_call(const schedule::Segment& segment) {
    const auto found = steps_.find(segment.root);
    Box box{std::string(to_string(segment.kind)), {}, {}};
    if (found != steps_.end()) {
      box.title = found->second->name;
      if (const auto* gemm = std::get_if<schedule::GemmStep>(&found->second->work)) {
        box.title +=
            fmt::format("\n{} x {} x {}", gemm->m.to_string(), gemm->n.to_string(), gemm->k.to_string());
        if (!gemm->batch.is(1)) box.title += fmt::format(", {} times", gemm->batch.to_string());
      } else if (const auto* kernel = std::get_if<schedule::KernelStep>(&found->second->work)) {
        box.title += fmt::format("\na user's kernel, grid {}", kernel->grid.to_string());
      }
    }
    Launch launch{.name = fmt::format("k{}_0", segment_), .inputs = segment.inputs};
    paint_pass(launch, {{.root = segment.root}}, 0, box);
    add_segment(segment, std::move(box));
  }

  void add_segment(const schedule::Segment& segment, Box box) {
    if (setup_.contains(segment.root)) box.title += "\nonce, for the parameters";
    for (const NodeId result : segment.results) stored_.emplace(result, stored_.at(segment.root));
    boxes_.push_back(std::move(box));
  }

  // Passes -------------------------------------------------------------------------------------------------

  void paint_pass(Launch& launch, const std::vector<Stage>& stages, int pass, Box& box) {
    std::vector<Visit> work;
    for (const Stage& stage : stages) {
      if (stage.pass == pass) work.push_back({stage.root, !walks(stage.form)});
    }
    std::map<NodeId, std::string> made;
    while (!work.empty()) {
      const Visit visit = work.back();
      work.pop_back();
      const std::string name = node_name(launch, pass, visit.node);
      if (!made.emplace(visit.node, name).second) continue;
      if (visit.once_a_row) launch.rows.emplace(visit.node, name);
      const schedule::CachedValue* cached = cached_at(launch, visit.node, pass);
      if (const auto part = launch.parts.find(visit.node); part != launch.parts.end()) {
        add_edge(part->second, name, Way::memory);
      } else if (cached && cached->first < pass) {
        add_edge(launch.registers.at(visit.node), name, Way::cached);
      } else {
        paint_operands(launch, pass, visit, name, box, work);
      }
    }
    for (const auto& [id, name] : made) box.nodes.push_back(op_node(launch, pass, id, name));
    for (const Stage& stage : stages) {
      if (stage.pass != pass) continue;
      stored_[stage.root] = made.at(stage.root);
      if (stage.form != Stage::Form::inner_reduce) continue;
      for (const NodeId total : totals_of(stage)) launch.totals[total] = made.at(total);
    }
  }

  void paint_operands(Launch& launch, int pass, const Visit& visit, const std::string& to, Box& box,
                      std::vector<Visit>& work) {
    const ir::Node& node = graph_[visit.node];
    const bool once_a_row = visit.once_a_row || same_for_row(launch, node);
    std::set<NodeId> seen;
    for (const NodeId operand : node.operands) {
      const bool input = is_input(launch, operand);
      if (!seen.insert(operand).second || (!input && free_[operand])) continue;
      const schedule::CachedValue* cached = cached_at(launch, operand, pass);
      const bool later = cached && cached->first < pass;
      if (const auto total = launch.totals.find(operand); total != launch.totals.end()) {
        add_edge(total->second, to, launch.total);
      } else if (later) {
        add_edge(launch.registers.at(operand), to, Way::cached);
      } else if (cached && input) {
        add_edge(load_node(launch, pass, operand, box), to, Way::thread);
      } else if (input) {
        add_edges_from_memory(operand, to);
      } else if (const auto row = launch.rows.find(operand); row != launch.rows.end()) {
        add_edge(row->second, to, Way::thread);
      } else {
        add_edge(node_name(launch, pass, operand), to, Way::thread);
        work.push_back({operand, once_a_row});
      }
    }
  }

  static std::string node_name(const Launch& launch, int pass, NodeId id) {
    return fmt::format("{}_{}_n{}", launch.name, pass, id);
  }

  static bool is_input(const Launch& launch, NodeId id) {
    return std::find(launch.inputs.begin(), launch.inputs.end(), id) != launch.inputs.end();
  }

  static const schedule::CachedValue* cached_at(const Launch& launch, NodeId id, int pass) {
    for (const schedule::CachedValue& cached : launch.cached) {
      if (cached.node == id && cached.first <= pass && pass <= cached.last) return &cached;
    }
    return nullptr;
  }

  /// A broadcast that repeats along all dims that are reduced: its operand is one value a row.
  bool same_for_row(const Launch& launch, const ir::Node& node) const {
    if (info(node.op).relation != ir::Relation::broadcast) return false;
    if (node.type.dims.size() != launch.is_reduced.size()) return false;
    const std::vector<std::int64_t>& map = ir::attr<ir::DimsAttr>(node).dims;
    const std::vector<Dim>& operand = graph_[node.operands[0]].type.dims;
    for (std::size_t i = 0; i < operand.size(); ++i) {
      if (!operand[i].is(1) && launch.is_reduced[static_cast<std::size_t>(map[i])]) return false;
    }
    return true;
  }

  // Nodes, edges -------------------------------------------------------------------------------------------

  Node op_node(Launch& launch, int pass, NodeId id, const std::string& name) {
    const ir::Node& node = graph_[id];
    std::string label =
        fmt::format("{} {}\n{}", graph_.value_name(id), to_string(node.op), dims_text(node.type));
    const ir::Relation relation = info(node.op).relation;
    const bool marked = relation == ir::Relation::reduce || relation == ir::Relation::scan;
    const schedule::CachedValue* cached = cached_at(launch, id, pass);
    if (cached && cached->first == pass) {
      launch.registers[id] = name;
      label += cached_text(launch);
    }
    return {name, "label=" + dot_string(label) + (marked ? ", fillcolor=\"#ffedd5\"" : "")};
  }

  static std::string cached_text(const Launch& launch) {
    return fmt::format("\ncached: {} per thread", launch.elements_per_thread);
  }

  /// Of an input that the pass loads for later ones too.
  std::string load_node(Launch& launch, int pass, NodeId id, Box& box) {
    const auto [found, added] = launch.registers.emplace(id, node_name(launch, pass, id));
    if (added) {
      const std::string label = "load " + graph_.value_name(id) + cached_text(launch);
      box.nodes.push_back({found->second, "label=" + dot_string(label)});
      add_edges_from_memory(id, found->second);
    }
    return found->second;
  }

  void paint_given(NodeId id) {
    const ir::Node& node = graph_[id];
    const std::string name = stored_[id] = fmt::format("given{}", id);
    const bool input = node.op == ir::Op::input;
    const std::string label = ir::attr<ir::NameAttr>(node).name + '\n' + ir::to_string(node.type);
    outside_.push_back({name, fmt::format("label={}, shape=ellipse, style=filled, fillcolor=\"{}\"",
                                          dot_string(label), input ? "#dbeafe" : "#ede9fe")});
  }

  void paint_output(std::size_t index) {
    const ir::Output& output = graph_.outputs[index];
    const std::string name = fmt::format("output{}", index);
    const std::string label = output.name + '\n' + ir::to_string(graph_[output.node].type);
    outside_.push_back({name, "label=" + dot_string(label) +
                                  ", shape=ellipse, style=filled, fillcolor=\"#dcfce7\", peripheries=2"});
    add_edges_from_memory(output.node, name);
  }

  void add_edge(const std::string& from, const std::string& to, Way way) {
    const WayStyle style = style_of(way);
    edges_.push_back(fmt::format("{} -> {} [color=\"{}\", {}]", from, to, style.color, style.line));
  }

  /// From all that writes the memory in which the value lies.
  void add_edges_from_memory(NodeId value, const std::string& to) {
    const schedule::Partition& partition = compiled_.partition;
    std::set<std::string> seen;
    for (const NodeId part : written_values(partition.views, partition.storage[value])) {
      const auto from = stored_.find(part);
      if (from != stored_.end() && seen.insert(from->second).second) add_edge(from->second, to, Way::memory);
    }
  }

  // Text ---------------------------------------------------------------------------------------------------

  std::string text() const {
    const std::string font = "fontname=\"Helvetica,Arial,sans-serif\", fontsize=12, fontcolor=\"#111827\"";
    std::string text = fmt::format("digraph {} {{\n", dot_string(graph_.name));
    text += fmt::format("  graph [rankdir=TB, bgcolor=white, ranksep=0.3, nodesep=0.25, {}]\n", font);
    text += fmt::format(
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, color=\"#6b7280\", height=0.3, "
        "margin=\"0.12,0.05\", {}]\n",
        font);
    text += "  edge [arrowsize=0.7]\n";
    for (const Node& node : outside_) text += fmt::format("  {} [{}]\n", node.name, node.attributes);
    int count = 0;
    for (const Box& box : boxes_) text += box_text(box, 1, count);
    for (const std::string& edge : edges_) text += "  " + edge + '\n';
    return text + "  graph [labelloc=b, label=" + legend() + "]\n}\n";
  }

  /// A title of several lines is a node beside the first one, so that edges go around it.
  static std::string box_text(const Box& box, int depth, int& count) {
    const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
    const bool long_title = box.title.find('\n') != std::string::npos;
    const int number = count++;
    std::string text = fmt::format("{}subgraph cluster_{} {{\n", indent, number);
    text += fmt::format(
        "{}  graph [label={}, labeljust=l, style=\"rounded,filled\", fillcolor=\"{}\", color=\"#94a3b8\"]\n",
        indent, long_title ? "\"\"" : dot_string(box.title), depth % 2 == 1 ? "#f1f5f9" : "#ffffff");
    for (const Node& node : box.nodes)
      text += fmt::format("{}  {} [{}]\n", indent, node.name, node.attributes);
    for (const Box& inner : box.boxes) text += box_text(inner, depth + 1, count);
    if (long_title) {
      text += fmt::format("{}  title{} [label={}, shape=plaintext, style=\"\"]\n", indent, number,
                          dot_string(box.title + '\n', "\\l"));
      text += fmt::format("{}  {} -> title{} [style=invis, minlen=0]\n", indent, first_name(box), number);
    }
    return text + indent + "}\n";
  }

  static const std::string& first_name(const Box& box) {
    return box.nodes.empty() ? first_name(box.boxes.front()) : box.nodes.front().name;
  }

  static std::string legend() {
    std::string text = "<<table border=\"0\" cellspacing=\"0\">";
    for (const Way way : {Way::thread, Way::shared, Way::cluster, Way::cached, Way::memory}) {
      const WayStyle style = style_of(way);
      text += fmt::format(
          "<tr><td align=\"right\"><font color=\"{}\">{}</font></td><td align=\"left\">{}</td></tr>",
          style.color, style.sign, style.meaning);
    }
    return text + "</table>>";
  }

  const Compiled& compiled_;
  const ir::Graph& graph_;
  std::map<NodeId, const schedule::Step*> steps_{};  // that compute each node
  std::set<NodeId> setup_{};                         // computed once
  const std::vector<bool> free_ = constant_nodes(graph_);
  std::size_t segment_ = 0;                 // that is being painted
  std::map<NodeId, std::string> stored_{};  // the node that writes each value to memory
  std::vector<Box> boxes_{};
  std::vector<Node> outside_{};
  std::vector<std::string> edges_{};
};

}  // namespace

std::string plan_dot(const Compiled& compiled) { return PlanPainter(compiled).run(); }

}  // namespace fuse::fusec
