// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "fusec/compiled_graph.hpp"
#include "fusec/print/fusec_json.hpp"
#include "schedule/fusion/fusion_report.hpp"
#include "schedule/mapping/schemes.hpp"

namespace fuse::fusec {
namespace {

using ir::NodeId;

class Describer {
 public:
  explicit Describer(const CompiledGraph& compiled)
      : compiled_(compiled),
        stages_(compiled.stages),
        graph_(compiled.stages.graph),
        binding_(compiled.binding()) {}

  Json run() const {
    Json json;
    json["version"] = 1;
    json["graph"] = graph();
    json["target"] = compiled_.target.name;
    json["dims"] = std::map(compiled_.dims.begin(), compiled_.dims.end());
    if (compiled_.regions.each.size() > 1) {
      json["build"] = compiled_.build;
      json["builds"] = table(compiled_.regions.table);
    }
    json["groups"] = groups();
    json["segments"] = Json::array();
    for (std::size_t i = 0; i < stages_.partition.segments.size(); ++i)
      json["segments"].push_back(segment(i));
    json["edges"] = edges();
    json["kernels"] = kernels();
    json["gemms"] = Json::array();
    json["setup"] = Json::array();
    for (const schedule::Step& step : stages_.plan.setup) json["setup"].push_back(this->step(step));
    for (const schedule::VersionTable& table : stages_.plan.tables)
      json["tables"].push_back(this->table(table));
    json["steps"] = Json::array();
    for (const schedule::Step& step : stages_.plan.steps) {
      if (const auto* work = std::get_if<schedule::GemmStep>(&step.work)) {
        json["gemms"].push_back(gemm(step, *work));
      }
      json["steps"].push_back(this->step(step));
    }
    return json;
  }

 private:
  Json graph() const {
    const ir::Graph& source = compiled_.source;
    Json json = {{"name", source.name}, {"ops", source.nodes.size()}, {"dims", Json::array()}};
    for (const ir::Symbol& symbol : source.symbols) {
      json["dims"].push_back({{"name", symbol.name},
                              {"min", symbol.range.min},
                              {"max", symbol.range.max},
                              {"hint", symbol.range.hint}});
    }
    for (const ir::Guard& guard : stages_.guards) {
      json["guards"].push_back({{"guard", guard.relation.to_string()},
                                {"needed_by", guard.needed_by},
                                {"location", to_string(guard.location)}});
    }
    return json;
  }

  Json names(const std::vector<NodeId>& ids) const {
    Json json = Json::array();
    for (const NodeId id : ids) json.push_back(graph_.value_name(id));
    return json;
  }

  Json node(NodeId id) const {
    const ir::Node& n = graph_[id];
    return {{"name", graph_.value_name(id)},
            {"op", to_string(n.op)},
            {"type", ir::to_string(n.type)},
            {"scope", graph_.scope_path(n.scope)},
            {"location", to_string(graph_.location(n))}};
  }

  Json groups() const {
    Json json = Json::array();
    for (const schedule::Group& group : stages_.partition.grouping.groups) {
      Json entry = {{"nodes", names(group.nodes)}, {"class", to_string(group.type)}};
      if (group.loops.form != schedule::Loops::Form::none) {
        entry["form"] = {{"name", to_string(group.loops.form)},
                         {"kept", group.loops.kept.to_string()},
                         {"reduced", group.loops.reduced.to_string()}};
      }
      entry["reads"] = names(group.inputs);
      entry["makes"] = names(group.outputs);
      json.push_back(std::move(entry));
    }
    for (const schedule::Refusal& refusal : stages_.partition.refusals) {
      json[refusal.group]["refused"] = {{"reason", to_string(refusal.reason)},
                                        {"split_at", names(refusal.at)}};
    }
    return json;
  }

  Json edges() const {
    Json json = Json::array();
    for (const schedule::UnfusedEdge& edge :
         unfused_edges(graph_, stages_.partition, compiled_.partition, compiled_.target)) {
      Json numbers = Json::object();
      for (const auto& [name, value] : edge.numbers) numbers[name] = value;
      json.push_back({{"value", graph_.value_name(edge.value)},
                      {"producer", edge.producer},
                      {"consumer", edge.consumer},
                      {"reason", to_string(edge.reason)},
                      {"rule", edge.rule},
                      {"numbers", std::move(numbers)},
                      {"bytes", edge.bytes.to_string()},
                      {"bytes_value", binding_.value(edge.bytes)},
                      {"would_change", schedule::would_change(edge.reason)},
                      {"assume", edge.assume}});
    }
    return json;
  }

  Json segment(std::size_t index) const {
    const schedule::Segment& segment = stages_.partition.segments[index];
    Json nodes = Json::array();
    for (const NodeId id : segment.nodes) nodes.push_back(node(id));
    return {{"index", index},
            {"kind", to_string(segment.kind)},
            {"root", graph_.value_name(segment.root)},
            {"nodes", std::move(nodes)},
            {"inputs", names(segment.inputs)},
            {"results", names(segment.results)},
            {"phases", phases(segment)},
            {"schemes", schemes(index)},
            {"group", segment.group == schedule::no_group ? Json(nullptr) : Json(segment.group)},
            {"end", segment.end}};
  }

  Json phases(const schedule::Segment& segment) const {
    Json json = Json::array();
    for (const schedule::Phase& phase : segment.phases) {
      json.push_back({{"root", graph_.value_name(phase.root)},
                      {"nodes", names(phase.nodes)},
                      {"inputs", names(phase.inputs)},
                      {"stages", stages(phase)}});
    }
    return json;
  }

  /// How each value of a kernel reaches the threads that need it.
  Json schemes(std::size_t index) const {
    Json json = Json::array();
    const std::vector<schedule::Segment>& segments = stages_.partition.segments;
    if (segments[index].kind != schedule::Segment::Kind::kernel) return json;
    for (const schedule::NodeScheme& each :
         schemes_of(graph_, stages_.schedules[first_schedule(stages_, index)])) {
      json.push_back({{"value", graph_.value_name(each.node)},
                      {"op", to_string(graph_[each.node].op)},
                      {"scheme", schedule::to_string(each.scheme)},
                      {"dominance", schedule::to_string(each.dominance)},
                      {"phase", each.phase}});
    }
    return json;
  }

  Json stages(const schedule::Phase& phase) const {
    Json json = Json::array();
    for (const schedule::Stage& stage : phase.stages) {
      json.push_back({{"root", graph_.value_name(stage.root)},
                      {"op", to_string(graph_[stage.root].op)},
                      {"form", schedule::to_string(stage.form)},
                      {"pass", stage.pass}});
    }
    return json;
  }

  Json kernels() const {
    Json json = Json::array();
    const std::vector<KernelOrigin> origins = kernel_origins(stages_);
    for (std::size_t i = 0; i < origins.size(); ++i) json.push_back(kernel(i, origins[i]));
    return json;
  }

  Json kernel(std::size_t index, const KernelOrigin& origin) const {
    const codegen::KernelInfo& info = stages_.source.kernels[index];
    Json ops = Json::array(), params = Json::array();
    for (const NodeId id : origin.schedule->segment.nodes) ops.push_back(to_string(graph_[id].op));
    for (const codegen::KernelParam& param : info.params) {
      const bool buffer = param.kind == codegen::KernelParam::Kind::buffer;
      Json entry = {
          {"name", param.name}, {"kind", buffer ? "buffer" : "extent"}, {"dtype", to_string(param.dtype)}};
      if (buffer) entry["written"] = param.written;
      params.push_back(std::move(entry));
    }
    return {{"name", info.name},
            {"segment", origin.segment},
            {"shared_by", origin.segments},
            {"ops", std::move(ops)},
            {"launch",
             {{"grid", origin.launch->grid.to_string()},
              {"grid_value", binding_.value(origin.launch->grid)},
              {"block", info.block_threads}}},
            {"nest", loops_text(*origin.launch)},
            {"results", origin.launch->results.to_string()},
            {"reduced", origin.launch->reduced.to_string()},
            {"index_type", to_string(stages_.kernels[index].index_type)},
            {"shared_bytes", info.shared_bytes},
            {"barriers", barrier_count(info)},
            {"params", std::move(params)}};
  }

  Json gemm(const schedule::Step& step, const schedule::GemmStep& work) const {
    return {{"name", step.name},
            {"batch", work.batch.to_string()},
            {"m", work.m.to_string()},
            {"n", work.n.to_string()},
            {"k", work.k.to_string()},
            {"transpose_a", work.transpose_a},
            {"transpose_b", work.transpose_b},
            {"dtype", to_string(work.operand)},
            {"result", to_string(work.result)},
            {"values",
             {{"batch", binding_.value(work.batch)},
              {"m", binding_.value(work.m)},
              {"n", binding_.value(work.n)},
              {"k", binding_.value(work.k)}}}};
  }

  Json values(const std::vector<schedule::ValueId>& ids) const {
    Json json = Json::array();
    for (const schedule::ValueId id : ids) json.push_back(stages_.plan.values[id].name);
    return json;
  }

  struct Kind {
    const char* operator()(const schedule::KernelStep&) const { return "kernel"; }
    const char* operator()(const schedule::GemmStep&) const { return "gemm"; }
    const char* operator()(const schedule::CopyStep&) const { return "copy"; }
    const char* operator()(const schedule::MemsetStep&) const { return "memset"; }
  };

  /// A branch leads to a test or to a version.
  static Json table(const schedule::VersionTable& table) {
    const auto branch = [](const schedule::VersionTable::Branch& each) {
      return Json{{each.ends ? "version" : "test", each.to}};
    };
    Json json = {{"versions", table.versions}, {"tests", Json::array()}};
    for (const schedule::VersionTable::Test& test : table.tests) {
      json["tests"].push_back(
          {{"relation", test.relation.to_string()}, {"yes", branch(test.yes)}, {"no", branch(test.no)}});
    }
    return json;
  }

  Json step(const schedule::Step& step) const {
    Json json = {{"kind", std::visit(Kind{}, step.work)},
                 {"name", step.name},
                 {"reads", values(step.reads)},
                 {"writes", values(step.writes)},
                 {"nodes", names(step.nodes)},
                 {"cooperative", step.cooperative}};
    // The name of a kernel is that of the first step that runs it.
    if (const auto* work = std::get_if<schedule::KernelStep>(&step.work)) {
      json["kernel"] = stages_.source.kernels[work->kernel].name;
    }
    if (step.version) json["version"] = {{"table", step.version->table}, {"number", step.version->version}};
    return json;
  }

  const CompiledGraph& compiled_;
  const Compiled& stages_;
  const ir::Graph& graph_;  // after the passes
  const runtime::Binding binding_;
};

}  // namespace

std::string plan_json(const CompiledGraph& compiled) { return json_text(Describer(compiled).run()); }

}  // namespace fuse::fusec
