// Which op each statement of a lowered kernel belongs to: what the printed kernel says behind '#', and the
// comments of the CUDA text. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "ir/kernel/visit.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/mapping/legal_nests.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Compares the origins of a kernel's statements with the ops that they are known to compute.
class Origins {
 public:
  Origins(const ir::Graph& graph, const codegen::LoweredKernel& lowered, ir::NodeId root)
      : graph_(graph), kernel_(lowered.kernel), root_(root) {
    std::size_t next = 0;
    for (kernel::BufferId id = 0; id < kernel_.buffers.size(); ++id) {
      if (kernel_.buffers[id].space != kernel::Space::global) continue;
      if (const auto* node = std::get_if<ir::NodeId>(&lowered.bindings.at(next++))) bound_[id] = *node;
    }
    for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) by_op_[graph[id].op].push_back(id);
  }

  /// What is computed for an op's own sake belongs to `subject`, if there is one.
  std::vector<std::string> wrong(std::optional<ir::Op> subject = std::nullopt) {
    if (subject) subject_ = by_op_.at(*subject).at(0);
    kernel::for_each_stmt(kernel_.body, [&](const kernel::Stmt& stmt) { note_definition(stmt); });
    for (kernel::ReductionId id = 0; id < kernel_.reductions.size(); ++id) {
      for (const kernel::Stmt& stmt : kernel_.reductions[id].region) check_reduction(id, stmt.origin.op);
    }
    kernel::for_each_stmt(kernel_.body, [&](const kernel::Stmt& stmt) {
      std::visit([&](const auto& node) { check(node, stmt.origin.op); }, stmt.node);
    });
    return {wrong_.begin(), wrong_.end()};
  }

 private:
  std::string text(ir::NodeId id) const {
    return graph_.value_name(id) + ' ' + std::string(to_string(graph_[id].op));
  }
  void expect(const std::string& what, const std::string& origin, const std::string& wanted) {
    if (origin != wanted) wrong_.insert(what + " belongs to " + origin + ", not to " + wanted);
  }

  void note_definition(const kernel::Stmt& stmt) {
    if (const auto* let = std::get_if<kernel::Let>(&stmt.node);
        let && std::holds_alternative<kernel::Load>(let->rhs))
      loaded_.insert(let->var);
    kernel::for_each_assigned(stmt, [&](kernel::VarId var) { defined_.try_emplace(var, stmt.origin.op); });
  }

  /// An array of the kernel's own holds values of one op: what fills it and what reads it belong there.
  void check_access(kernel::BufferId buffer, const std::string& origin) {
    const std::string& name = kernel_.buffers[buffer].name;
    if (const auto found = bound_.find(buffer); found != bound_.end())
      return expect(name, origin, text(found->second));
    if (kernel_.buffers[buffer].space == kernel::Space::global && name.starts_with("counter")) return;
    expect(name, origin, arrays_.try_emplace(buffer, origin).first->second);
  }

  void check_reduction(kernel::ReductionId reduction, const std::string& origin) {
    const ir::Op op = kernel_.reductions[reduction].op;
    const auto found = by_op_.find(by_op_.contains(ir::Op::cumulative_sum) ? ir::Op::cumulative_sum : op);
    expect("a state of " + std::string(to_string(op)), origin, text(found->second.at(0)));
  }
  std::string sum() const {
    return text(
        by_op_.at(by_op_.contains(ir::Op::cumulative_sum) ? ir::Op::cumulative_sum : ir::Op::reduce_sum)[0]);
  }

  void check(const kernel::Let& let, const std::string& origin) {
    const std::string& name = kernel_.vars[let.var].name;
    if (const auto* load = std::get_if<kernel::Load>(&let.rhs)) return check_access(load->buffer, origin);
    if (std::holds_alternative<kernel::Random>(let.rhs))
      return expect(name, origin, text(by_op_.at(ir::Op::random_uniform).at(0)));
    if (const auto* compute = std::get_if<kernel::Compute>(&let.rhs);
        compute && by_op_.contains(compute->op)) {
      const std::vector<ir::NodeId>& nodes = by_op_.at(compute->op);
      const bool one =
          std::any_of(nodes.begin(), nodes.end(), [&](ir::NodeId id) { return origin == text(id); });
      if (one || compute->op != ir::Op::sub) {
        if (!one) expect(name, origin, text(nodes[0]));
        return;
      }
    }
    if (std::holds_alternative<kernel::Constant>(let.rhs) ||
        std::holds_alternative<kernel::IndexValue>(let.rhs)) {
      made_here_.insert(let.var);
      if (subject_ && by_op_.contains(ir::Op::iota))
        expect(name, origin,
               text(by_op_.at(std::holds_alternative<kernel::Constant>(let.rhs) ? ir::Op::constant
                                                                                : ir::Op::iota)[0]));
    } else if (subject_) {
      expect(name, origin, text(*subject_));
    } else {  // of a scan, or of the sum below a maximum
      expect(name, origin, sum());
    }
  }
  void check(const kernel::Store& store, const std::string& origin) {
    check_access(store.buffer, origin);
    // An op that moves elements computes nothing: what it keeps may be what another op made.
    const auto bound = bound_.find(store.buffer);
    const bool moves = bound != bound_.end() && info(graph_[bound->second].op).has(ir::Trait::movement);
    if (!moves && !loaded_.contains(store.value))
      expect("what " + kernel_.buffers[store.buffer].name + " keeps", origin, defined_.at(store.value));
  }
  void check(const kernel::Declare& declare, const std::string& origin) {
    check_reduction(declare.reduction, origin);
    for (const kernel::VarId var : declare.initial)
      expect("what a state begins with", origin, defined_.at(var));
  }
  void check(const kernel::Combine& combine, const std::string& origin) {
    check_reduction(combine.reduction, origin);
    for (const kernel::VarId var : combine.incoming) {
      if (made_here_.contains(var)) expect("a constant or a place", origin, defined_.at(var));
    }
  }
  void check(const kernel::WarpCombine& combine, const std::string& origin) {
    check_reduction(combine.reduction, origin);
  }
  void check(const kernel::WarpScan& scan, const std::string& origin) {
    expect("a scan", origin, text(by_op_.at(ir::Op::cumulative_sum).at(0)));
    expect("a scan's carry", origin, defined_.at(scan.carry));
  }
  void check(const kernel::BindData& data, const std::string& origin) {
    if (subject_) expect(data.name, origin, text(*subject_));
  }
  // Those of rows stand between two ops of the phase; a tile is filled and read for the whole of it.
  void check(const kernel::Barrier&, const std::string& origin) {
    if (by_op_.contains(ir::Op::transpose)) expect("a barrier", origin, text(root_));
  }
  void check(const kernel::ClusterWait&, const std::string& origin) { expect("a wait", origin, text(root_)); }
  void check(const kernel::KeepPacked& kept, const std::string& origin) { check_access(kept.array, origin); }
  void check(const kernel::GridBarrier&, const std::string& origin) {
    expect("a grid barrier", origin, text(root_));
  }
  template <class Other>
  void check(const Other&, const std::string&) {}

  const ir::Graph& graph_;
  const kernel::Kernel& kernel_;
  const ir::NodeId root_;
  std::map<kernel::BufferId, ir::NodeId> bound_;
  std::map<ir::Op, std::vector<ir::NodeId>> by_op_;
  std::map<kernel::VarId, std::string> defined_;
  std::set<kernel::VarId> loaded_, made_here_;
  std::map<kernel::BufferId, std::string> arrays_;
  std::optional<ir::NodeId> subject_;
  std::set<std::string> wrong_;
};

/// All that is wrong in the kernels of the graph, which is one phase, by one nest of each structure.
std::size_t check_origins_of_nests(const Graph& from, const schedule::NestNumbers& numbers) {
  const Target target = target_profile("h200");
  const Compiled made = run_pipeline(ir_of(from), target, {});
  REQUIRE(made.partition.segments.size() == 1);
  REQUIRE(made.partition.segments[0].phases.size() == 1);
  const schedule::Segment& segment = made.partition.segments[0];
  std::set<std::string> seen;
  schedule::each_legal_nest(
      made.graph, segment.phases[0], target, numbers, [&](const schedule::Choices& choices) {
        if (!seen.insert(structure_of(choices)).second) return;
        const schedule::Schedule schedule = schedule::make_schedule(made.graph, segment, {{choices}}, target);
        for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
          const codegen::LoweredKernel lowered = codegen::lower(made.graph, schedule, i, "k");
          const std::vector<std::string> wrong = Origins(made.graph, lowered, segment.phases[0].root).wrong();
          INFO(ir_of(from).name << ": " << choices.to_string() << '\n'
                                << (wrong.empty() ? std::string() : print(lowered.kernel)));
          CHECK(wrong == std::vector<std::string>{});
        }
      });
  return seen.size();
}

}  // namespace

TEST_CASE("statements belong to the op that they compute: rows, columns, both, scans and tiles", "[kernel]") {
  const schedule::NestNumbers numbers{.warps = {2, 3},
                                      .lanes = {1, 4, 32},
                                      .vectors = {1, 2},
                                      .blocks_per_row = {1, 3},
                                      .turns = {0, 2},
                                      .register_cache = {32},
                                      .shared_cache = {24},
                                      .accumulators = {2},
                                      .row_to_row = true};
  Graph rows("rows");
  {
    const Tensor x = rows.input("x", f32, {37, 72}), z = rows.input("z", f16, {37, 72}), e = exp(x),
                 t = tanh(z);
    const Tensor low = min(t, {1}, {.keep_dims = true});
    rows.output("e", e);
    rows.output("y", e / sum(e, {1}, {.keep_dims = true}));
    rows.output("low", low);
    rows.output("t", t * low);
    rows.output("where", argmax(x, 1));
  }
  Graph moved("moved");
  {
    const Tensor x = moved.input("x", f32, {37, 72}), low = min(tanh(x), {1}, {.keep_dims = true});
    moved.output("spread", broadcast_in_dim(low, {37, 72}, {0, 1}));
    moved.output("y", exp(x) - low);
  }
  Graph softmaxes("softmaxes");
  softmaxes.output("y", softmax(softmaxes.input("x", f32, {37, 72})));
  Graph columns("columns");
  {
    const Tensor x = columns.input("x", f32, {37, 72});
    columns.output("y", sum(exp(x), {0}));
    columns.output("low", min(tanh(x), {0}));
    columns.output("where", argmax(x, 0));
  }
  Graph both("both");
  {
    const Tensor x = both.input("x", f32, {37, 72}), e = exp(x);
    both.output("total", min(e, {0}));
    both.output("where", argmax(x, 0));
    both.output("y", e / sum(e, {1}, {.keep_dims = true}));
    both.output("high", max(tanh(x), {1}));
  }
  Graph scan("scan");
  scan.output("y", cumulative_sum(exp(scan.input("x", f32, {37, 72})), 1, {.exclusive = true}));
  Graph tiles("tiles");
  {
    const Tensor a = tiles.input("a", f32, {72, 37}), b = tiles.input("b", f32, {72, 37});
    const Tensor e = exp(transpose(a, {1, 0}));
    tiles.output("e", e);
    tiles.output("y", e + tanh(transpose(b, {1, 0})));
    tiles.output("same", reshape(e, {37, 72, 1}));
  }
  Graph cubes("cubes");  // one transpose by tiles, and one of which rows stay rows
  {
    const Tensor same = transpose(cubes.input("b", f32, {3, 37, 40}), {1, 0, 2});
    cubes.output("rows", same);
    cubes.output("y", exp(transpose(cubes.input("a", f32, {40, 3, 37}), {2, 1, 0})) + same);
  }
  for (const Graph* graph : {&rows, &moved, &softmaxes, &columns, &both, &scan, &tiles, &cubes})
    CHECK(check_origins_of_nests(*graph, numbers) > 1);
}

TEST_CASE("conditions and places that an op needs belong to it", "[kernel]") {
  struct Moves {
    ir::Op op;
    std::function<Tensor(Graph&, const Tensor&)> of;
  };
  const auto place = [](Graph& g, const char* name) { return g.input(name, i32, {}) * 3; };
  const std::vector<Moves> all = {
      {ir::Op::pad,
       [](Graph& g, const Tensor& x) {
         return pad(x, log(g.input("v", f32, {})), {2, 3}, {1, 0});
       }},
      {ir::Op::concat,
       [](Graph& g, const Tensor& x) {
         return concat({x, log(g.input("a", f32, {5, 12})), sqrt(g.input("b", f32, {3, 12}))}, 0);
       }},
      {ir::Op::random_uniform,
       [&](Graph& g, const Tensor& x) {
         const Tensor seed = -g.input("seed", i64, {}), offset = abs(g.input("offset", i64, {}));
         return random_uniform(f32, {8, 12}, seed, offset) +
                (x + 2.5) * sqrt(convert(g.iota(i64, {8, 12}, 1), f32));
       }},
      {ir::Op::reverse,
       [](Graph&, const Tensor& x) {
         return reverse(x, {0, 1});
       }},
      {ir::Op::gather, [&](Graph& g, const Tensor& x) { return gather(x, g.input("i", i32, {7}) * 3, 0); }},
      {ir::Op::dynamic_slice,
       [&](Graph& g, const Tensor& x) {
         return dynamic_slice(x, {place(g, "i"), abs(g.input("j", i32, {}))}, {4, 5});
       }},
      {ir::Op::dynamic_update_slice,
       [&](Graph& g, const Tensor& x) {
         return dynamic_update_slice(x, log(g.input("u", f32, {4, 5})),
                                     {place(g, "i"), abs(g.input("j", i32, {}))});
       }},
  };
  for (const Moves& moves : all) {
    Graph g(std::string(to_string(moves.op)));
    g.output("y", tanh(moves.of(g, exp(g.input("x", f32, {8, 12})))));
    const OneSegment one(g);
    const schedule::Schedule schedule = one.make({.splits = schedule::nest_of_elements(128)});
    const codegen::LoweredKernel lowered = codegen::lower(one.graph, schedule, 0, "k");
    INFO(print(lowered.kernel));
    CHECK(Origins(one.graph, lowered, one.phase().root).wrong(moves.op) == std::vector<std::string>{});
  }
}
