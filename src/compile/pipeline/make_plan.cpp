// SPDX-License-Identifier: Apache-2.0
#include "compile/pipeline/make_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include "ir/graph/fixed_values.hpp"
#include "ir/graph/memory_values.hpp"
#include "schedule/segments/gemm_epilogue.hpp"
#include "schedule/segments/parts_read.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

class Planner {
 public:
  Planner(const ir::Graph& graph, const Partition& partition) : graph_(graph), partition_(partition) {
    for (const InPlaceChoice& choice : partition.in_place.choices) {
      if (choice.taken()) in_place_.insert(choice.output);
    }
  }

  Plan run(const std::vector<std::vector<SegmentKernels>>& kernels, std::vector<VersionTable> tables,
           const std::map<std::string, std::uint32_t>& customs) {
    plan_.tables = std::move(tables);
    add_signature();
    add_packed(kernels);
    for (std::size_t number = 0; number < partition_.segments.size(); ++number) {
      const Segment& segment = partition_.segments[number];
      if (segment.kind == Segment::Kind::gemm) {
        add_gemm(segment);
        continue;
      }
      if (segment.kind == Segment::Kind::custom) {
        add_custom(segment, customs);
        continue;
      }
      for (const SegmentKernels& run : kernels[number]) add_kernels(segment, run);
    }
    for (const auto& [output, value] : copied_) {
      add_copy(*output, value_of_.at(partition_.storage[output->node]), value);
    }
    // Memory that inputs give is written last; a value that lies in an input may be about to be overwritten
    // itself.
    for (auto& [output, value] : donated_) {
      const ir::Type& type = graph_[output->node].type;
      const ValueId from = value_of_.at(partition_.storage[output->node]);
      if (plan_.values[from].kind == PlanValue::Kind::temporary) {
        from_.push_back(from);
        continue;
      }
      from_.push_back(temporary(type.dtype, type.dims));
      add_copy(*output, from, from_.back());
    }
    for (std::size_t i = 0; i < donated_.size(); ++i)
      add_copy(*donated_[i].first, from_[i], donated_[i].second);
    zero_counters();
    return std::move(plan_);
  }

 private:
  ValueId add(PlanValue value) {
    plan_.values.push_back(std::move(value));
    return static_cast<ValueId>(plan_.values.size() - 1);
  }

  ValueId temporary(DType dtype, std::vector<Dim> dims) {
    return add({PlanValue::Kind::temporary, fmt::format("t{}", plan_.values.size()), dtype, std::move(dims)});
  }

  void add_copy(const ir::Output& output, ValueId from, ValueId to) {
    plan_.steps.push_back({.work = CopyStep{from, to},
                           .reads = {from},
                           .writes = {to},
                           .nodes = {output.node},
                           .name = "copy." + output.name});
  }

  /// A value that parameters alone determine is made once where a GEMM reads it, and so is what it is made
  /// of. Kernels make it in one launch, without scratch: the setup has no workspace.
  void add_packed(const std::vector<std::vector<SegmentKernels>>& kernels) {
    const std::vector<bool> fixed = ir::fixed_values(graph_);
    std::vector<const Segment*> makers;  // the makers of what can be packed, in order
    std::vector<bool> known(graph_.nodes.size()), wanted(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) known[id] = graph_[id].op == ir::Op::parameter;
    for (std::size_t number = 0; number < partition_.segments.size(); ++number) {
      const Segment& segment = partition_.segments[number];
      if (segment.kind == Segment::Kind::gemm) {
        for (const NodeId input : segment.inputs) wanted[whole_of(input)] = true;
      }
      if (segment.kind != Segment::Kind::kernel) continue;
      if (kernels[number].size() > 1) continue;
      const Schedule& schedule = *kernels[number].front().schedule;
      if (segment.phases.size() > 1 || segment.phases[0].stages.size() > 1)
        continue;  // what is fixed is not stitched to anything
      if (!fixed[segment.root] || value_of_.count(segment.root)) continue;
      if (schedule.kernels.size() != 1 || !schedule.scratch.empty()) continue;
      // A reshape may have memory of its own, so that what holds its operand says nothing.
      const auto is_known = [&](NodeId input) { return known[input]; };
      if (!std::all_of(segment.inputs.begin(), segment.inputs.end(), is_known)) continue;
      known[segment.root] = true;
      makers.push_back(&segment);
    }
    std::vector<NodeId> roots;
    for (auto maker = makers.rbegin(); maker != makers.rend(); ++maker) {
      if (!wanted[(*maker)->root]) continue;
      for (const NodeId input : (*maker)->inputs) wanted[input] = true;
      roots.push_back((*maker)->root);
    }
    for (auto root = roots.rbegin(); root != roots.rend(); ++root) {
      const ir::Type& type = graph_[*root].type;
      const std::string name = fmt::format("p{}", plan_.values.size());
      value_of_[*root] = add({PlanValue::Kind::packed, name, type.dtype, type.dims});
    }
  }

  /// The first output of a stored value is its buffer, but where the value is in place; an input, a value
  /// that is an output twice, or one that lies in another's memory, is copied.
  void add_signature() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const auto* named = std::get_if<ir::NameAttr>(&graph_[id].attr);
      if (!named) continue;
      const auto kind = graph_[id].op == ir::Op::input ? PlanValue::Kind::input : PlanValue::Kind::parameter;
      value_of_[id] = add({kind, named->name, graph_[id].type.dtype, graph_[id].type.dims});
    }
    std::vector<ValueId> values;
    for (const ir::Output& output : graph_.outputs) {
      const ir::Type& type = graph_[output.node].type;
      PlanValue made{PlanValue::Kind::output, output.name, type.dtype, type.dims};
      if (output.donated()) made.donor = value_of_.at(output.donor);
      values.push_back(add(std::move(made)));
    }
    for (const std::size_t i : in_place_) value_of_[partition_.storage[graph_.outputs[i].node]] = values[i];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ir::Output& output = graph_.outputs[i];
      if (in_place_.contains(i)) continue;
      if (output.donated()) {
        donated_.emplace_back(&output, values[i]);
      } else if (partition_.views.of.contains(partition_.storage[output.node]) ||
                 !value_of_.emplace(partition_.storage[output.node], values[i]).second)
        copied_.emplace_back(&output, values[i]);
    }
  }

  /// A value stands after those that it lies in.
  ValueId value_of(NodeId node) {
    std::vector<NodeId> missing;
    for (NodeId id = node; !value_of_.contains(id);) {
      missing.push_back(id);
      const auto view = partition_.views.of.find(id);
      if (view == partition_.views.of.end()) break;
      id = view->second.whole;
    }
    for (; !missing.empty(); missing.pop_back()) {
      const NodeId id = missing.back();
      const ir::Type& type = graph_[id].type;
      const ValueId made = value_of_[id] = temporary(type.dtype, type.dims);
      if (partition_.in_place.of.contains(id))
        plan_.values[made].donor = value_of_.at(partition_.in_place.owner(id));
      const auto view = partition_.views.of.find(id);
      if (view == partition_.views.of.end()) continue;
      const auto size = static_cast<std::int64_t>(size_of(type.dtype));
      const bool strided = !view->second.strides.empty();
      if (strided) plan_.values[made].dims = {};
      plan_.values[made].inside =
          Inside{value_of_.at(view->second.whole), view->second.offset * size, strided};
    }
    return value_of_.at(node);
  }

  /// What holds a slice that is a view.
  NodeId whole_of(NodeId id) const {
    for (auto view = partition_.views.of.find(id); view != partition_.views.of.end() && !view->second.part;
         view = partition_.views.of.find(id)) {
      id = view->second.whole;
    }
    return id;
  }

  /// The steps of one version.
  void add_kernels(const Segment& segment, const SegmentKernels& run) {
    const Schedule& schedule = *run.schedule;
    std::vector<ValueId> scratch;
    for (const ScratchArray& array : schedule.scratch)
      scratch.push_back(temporary(array.dtype, {array.elements}));
    const std::size_t before = plan_.steps.size();
    if (schedule.kernels.back().role == KernelSchedule::Role::cooperative) {
      add_joined(segment, schedule, run.launches, scratch);
    } else {
      for (std::size_t i = 0; i < run.launches.size(); ++i)
        add_kernel(segment, schedule.kernels[i], run.launches[i], scratch);
    }
    for (std::size_t i = before; i < plan_.steps.size(); ++i) plan_.steps[i].version = run.version;
  }

  void add_kernel(const Segment& segment, const KernelSchedule& launch, const PlannedLaunch& planned,
                  const std::vector<ValueId>& scratch) {
    const bool once = plan_.values[value_of(segment.root)].kind == PlanValue::Kind::packed;
    const bool partial = launch.role == KernelSchedule::Role::partial;
    (once ? plan_.setup : plan_.steps).push_back(kernel_step(segment, launch, planned, scratch, partial, 0));
  }

  /// One step of a cooperative kernel, which its fallback launches may replace.
  void add_joined(const Segment& segment, const Schedule& schedule, std::span<const PlannedLaunch> launches,
                  const std::vector<ValueId>& scratch) {
    const ValueId barrier = counters(barrier_counters(schedule));
    Step step = kernel_step(segment, schedule.kernels.back(), launches.back(), scratch, true, barrier);
    step.cooperative = true;
    std::get<KernelStep>(step.work).counter = barrier;
    for (std::size_t i = 0; i + 1 < launches.size(); ++i) {
      Step part = kernel_step(segment, schedule.kernels[i], launches[i], scratch, false, 0);
      std::get<KernelStep>(step.work).fallback.push_back(std::get<KernelStep>(std::move(part.work)));
    }
    plan_.steps.push_back(std::move(step));
  }

  Step kernel_step(const Segment& segment, const KernelSchedule& launch, const PlannedLaunch& planned,
                   const std::vector<ValueId>& scratch, bool writes_scratch, ValueId counter) {
    KernelStep work{.kernel = planned.kernel, .extents = planned.extents, .grid = launch.grid};
    Step step{.nodes = segment.nodes, .name = planned.name};
    const std::vector<NodeId>& results = segment.results;
    for (const BufferSource& source : planned.buffers) {
      ValueId value = counter;
      bool written = false;  // no other step sees what the kernel adds to a counter
      if (source.kind == BufferSource::Kind::scratch) {
        value = scratch[source.scratch];
        written = writes_scratch;
      } else if (source.kind == BufferSource::Kind::node) {
        value = value_of(source.node);
        written = std::find(results.begin(), results.end(), source.node) != results.end();
      }
      work.buffers.push_back(value);
      (written ? step.writes : step.reads).push_back(value);
    }
    note_parts(segment, planned, work);
    step.work = std::move(work);
    return step;
  }

  /// What the kernel reads of values that it reads in part.
  void note_parts(const Segment& segment, const PlannedLaunch& planned, KernelStep& work) const {
    const std::vector<Dim> read = elements_read(graph_, segment.nodes, segment.inputs);
    bool in_part = false;
    std::vector<Dim> touched;
    for (std::size_t i = 0; i < planned.buffers.size(); ++i) {
      const PlanValue& value = plan_.values[work.buffers[i]];
      Dim elements = product(value.dims);
      const auto input = std::find(segment.inputs.begin(), segment.inputs.end(), planned.buffers[i].node);
      if (planned.buffers[i].kind == BufferSource::Kind::node && input != segment.inputs.end()) {
        const Dim& part = read[static_cast<std::size_t>(input - segment.inputs.begin())];
        in_part |= part != elements;
        elements = part;
      }
      touched.push_back(elements * static_cast<std::int64_t>(size_of(value.dtype)));
    }
    if (in_part) work.touched = std::move(touched);
  }

  /// The counters of the grid barriers of a step. One step zeroes those of all: a workspace holds random
  /// bytes, or counts that an aborted run left.
  ValueId counters(std::int64_t count) {
    constexpr std::int64_t apart = 4;  // parts of a value begin at multiples of 16 bytes
    if (counter_count_ == 0) counters_ = temporary(i32, {});
    const ValueId made = temporary(i32, {count});
    plan_.values[made].inside = Inside{counters_, 4 * counter_count_};
    counter_count_ += (count + apart - 1) / apart * apart;
    plan_.values[counters_].dims = {counter_count_};
    return made;
  }

  void zero_counters() {
    if (counter_count_ == 0) return;
    Step step{.work = MemsetStep{counters_, 0}, .writes = {counters_}, .name = "zero.barriers"};
    plan_.steps.insert(plan_.steps.begin(), std::move(step));
  }

  /// Its kernel stands after those of the schedules, once for all calls of it.
  void add_custom(const Segment& segment, const std::map<std::string, std::uint32_t>& kernels) {
    const ir::Node& node = graph_[segment.root];
    const auto& custom = ir::attr<ir::CustomAttr>(node);
    KernelStep work{.kernel = kernels.at(custom.name), .extents = custom.extents, .grid = custom.grid};
    Step step{.nodes = segment.nodes, .name = custom.name};
    for (const NodeId operand : node.operands) {
      work.buffers.push_back(value_of(partition_.storage[operand]));
      step.reads.push_back(work.buffers.back());
    }
    work.buffers.push_back(value_of(segment.root));
    step.writes = {work.buffers.back()};
    std::vector<KernelStep> parts;
    for (std::size_t i = 0; i < custom.parts.size(); ++i) {
      KernelStep part = work;
      part.kernel = kernels.at(custom.part_name(i));
      parts.push_back(std::move(part));
    }
    work.fallback = std::move(parts);
    if (custom.grid_barrier) {
      const ValueId barrier = counters(1);
      work.buffers.push_back(barrier);
      work.counter = barrier;
      step.reads.push_back(barrier);
      step.cooperative = true;
    }
    step.work = std::move(work);
    plan_.steps.push_back(std::move(step));
  }

  void add_gemm(const Segment& segment) {
    const NodeId matmul = matmul_of(segment);
    const ir::Node& node = graph_[matmul];
    const auto& transposes = ir::attr<ir::MatmulAttr>(node);
    const std::vector<Dim>& a = graph_[node.operands[0]].type.dims;
    const std::vector<Dim>& c = node.type.dims;
    const std::size_t rank = c.size();
    GemmStep work{.a = value_of(partition_.storage[node.operands[0]]),
                  .b = value_of(partition_.storage[node.operands[1]]),
                  .c = value_of(segment.root),
                  .batch = product({c.begin(), c.end() - 2}),
                  .m = c[rank - 2],
                  .n = c[rank - 1],
                  .k = a[transposes.transpose_a ? rank - 2 : rank - 1],
                  .transpose_a = transposes.transpose_a,
                  .transpose_b = transposes.transpose_b,
                  .operand = graph_[node.operands[0]].type.dtype,
                  .result = node.type.dtype,
                  .algorithm = segment.algorithm.value_or(GemmAlgorithm())};
    Step step{.reads = {work.a, work.b}, .writes = {work.c}, .nodes = segment.nodes};
    if (matmul != segment.root) add_epilogue(segment, matmul, work, step);
    if (const auto view = partition_.views.of.find(segment.root); view != partition_.views.of.end())
      work.layout = view->second.layout;
    if (const auto layouts = partition_.views.gemms.find(matmul); layouts != partition_.views.gemms.end()) {
      const auto read_in_strides = [](const std::optional<OperandLayout>& from,
                                      std::optional<GemmLayout>& layout, bool& transposed) {
        if (!from) return;
        layout = from->layout;
        transposed = from->transposed;
      };
      read_in_strides(layouts->second.a, work.layout_a, work.transpose_a);
      read_in_strides(layouts->second.b, work.layout_b, work.transpose_b);
    }
    const std::string scope = graph_.scope_path(node.scope);
    step.name = fmt::format("gemm.{}{}{}", segment.root, scope.empty() ? "" : ".", scope);
    step.work = std::move(work);
    plan_.steps.push_back(std::move(step));
  }

  /// The contraction of a GEMM's segment; what stands after it is the epilogue.
  NodeId matmul_of(const Segment& segment) const {
    const auto found = std::find_if(segment.nodes.begin(), segment.nodes.end(), [&](NodeId id) {
      return info(graph_[id].op).relation == ir::Relation::contraction;
    });
    return found == segment.nodes.end() ? segment.root : *found;
  }

  void add_epilogue(const Segment& segment, NodeId matmul, GemmStep& work, Step& step) {
    if (users_.empty()) {
      users_ = ir::users(graph_);
      in_memory_ = ir::memory_values(graph_);
    }
    const auto epilogue = gemm_epilogue(graph_, matmul, users_, in_memory_);
    if (!epilogue || epilogue->result != segment.root) {
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = fmt::format("plan: no epilogue of {} makes {}", graph_.value_name(matmul),
                                          graph_.value_name(segment.root))});
    }
    if (epilogue->kind == EpilogueKind::convert) {
      work.result = graph_[segment.root].type.dtype;
      return;
    }
    work.epilogue = epilogue->kind;
    work.scale = epilogue->scale;
    if (epilogue->kind == EpilogueKind::scale) return;
    work.extra = value_of(partition_.storage[epilogue->operand]);
    step.reads.push_back(*work.extra);
  }

  const ir::Graph& graph_;
  const Partition& partition_;
  std::vector<std::vector<NodeId>> users_;  // the users, where a GEMM has an epilogue
  std::vector<bool> in_memory_;
  Plan plan_;
  std::set<std::size_t> in_place_;                // outputs whose value is in place
  std::unordered_map<NodeId, ValueId> value_of_;  // the values of stored nodes
  std::vector<std::pair<const ir::Output*, ValueId>> copied_;
  std::vector<std::pair<const ir::Output*, ValueId>> donated_;  // outputs that are made aside
  std::vector<ValueId> from_;                                   // where those are
  ValueId counters_ = 0;                                        // the counters of all grid barriers
  std::int64_t counter_count_ = 0;
};

}  // namespace

Plan make_plan(const ir::Graph& graph, const Partition& partition,
               const std::vector<std::vector<SegmentKernels>>& kernels, std::vector<VersionTable> tables,
               const std::map<std::string, std::uint32_t>& customs) {
  return Planner(graph, partition).run(kernels, std::move(tables), customs);
}

}  // namespace fuse::schedule
