// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace fuse::schedule {
namespace {

std::string_view to_string(PlanValue::Kind kind) {
  switch (kind) {
    case PlanValue::Kind::input:
      return "input";
    case PlanValue::Kind::parameter:
      return "parameter";
    case PlanValue::Kind::output:
      return "output";
    case PlanValue::Kind::packed:
      return "packed";
    case PlanValue::Kind::temporary:
      return "temporary";
  }
  return "?";
}

std::string ids(std::string_view prefix, const std::vector<std::uint32_t>& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) text += fmt::format("{}{}{}", i ? ", " : "", prefix, list[i]);
  return text + ']';
}

struct PrintWork {
  std::string operator()(const KernelStep& s) const {
    std::string extents;
    for (const Dim& extent : s.extents) extents += (extents.empty() ? "" : ", ") + extent.to_string();
    std::string fallback;
    for (const KernelStep& launch : s.fallback)
      fallback += fmt::format("{}#{}", fallback.empty() ? "" : ", ", launch.kernel);
    if (!fallback.empty()) fallback = fmt::format(" fallback [{}]", fallback);
    std::string touched;
    for (const Dim& bytes : s.touched) touched += (touched.empty() ? "" : ", ") + bytes.to_string();
    if (!touched.empty()) touched = fmt::format(" bytes [{}]", touched);
    return fmt::format("kernel #{} grid {} buffers {}{} extents [{}]{}", s.kernel, s.grid.to_string(),
                       ids("v", s.buffers), touched, extents, fallback);
  }
  std::string operator()(const GemmStep& s) const {
    std::string epilogue;
    if (s.extra) epilogue = fmt::format(" {} v{}", schedule::to_string(s.epilogue), *s.extra);
    if (s.epilogue == EpilogueKind::scale) epilogue = fmt::format(" scale {}", s.scale);
    std::string algorithm;
    if (s.algorithm.rank > 0) algorithm = fmt::format(" algorithm {}", s.algorithm.rank);
    if (s.algorithms) algorithm += fmt::format(" algorithms {}", *s.algorithms);
    return fmt::format("gemm v{} = v{}{} * v{}{}{} batch {} m {} n {} k {} {} -> {}{}", s.c, s.a,
                       s.transpose_a ? "^T" : "", s.b, s.transpose_b ? "^T" : "", epilogue,
                       s.batch.to_string(), s.m.to_string(), s.n.to_string(), s.k.to_string(),
                       fuse::to_string(s.operand), fuse::to_string(s.result), algorithm) +
           (s.layout ? ": " + schedule::to_string(*s.layout) : "") +
           (s.layout_a ? "; a: " + schedule::to_string(*s.layout_a) : "") +
           (s.layout_b ? "; b: " + schedule::to_string(*s.layout_b) : "");
  }
  std::string operator()(const CopyStep& s) const { return fmt::format("copy v{} = v{}", s.to, s.from); }
  std::string operator()(const MemsetStep& s) const { return fmt::format("memset v{} = {}", s.to, s.byte); }
};

/// What the work itself says it touches: every value once, sorted.
struct Touches {
  std::set<ValueId> values;
  void operator()(const KernelStep& s) { values.insert(s.buffers.begin(), s.buffers.end()); }
  void operator()(const GemmStep& s) {
    values.insert({s.a, s.b, s.c});
    if (s.extra) values.insert(*s.extra);
  }
  void operator()(const CopyStep& s) { values.insert({s.from, s.to}); }
  void operator()(const MemsetStep& s) { values.insert(s.to); }
};

/// The value that the library calls write; a kernel's writes are checked against its parameters elsewhere.
struct Destination {
  const ValueId* operator()(const KernelStep&) const { return nullptr; }
  const ValueId* operator()(const GemmStep& s) const { return &s.c; }
  const ValueId* operator()(const CopyStep& s) const { return &s.to; }
  const ValueId* operator()(const MemsetStep& s) const { return &s.to; }
};

[[noreturn]] void fail(std::string message) {
  throw Error(
      {.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = "plan: " + std::move(message)});
}

class Verifier {
 public:
  explicit Verifier(const Plan& plan)
      : plan_(plan), written_(plan.values.size(), 0), missing_(plan.values.size(), 0) {}

  void run() {
    check_ids();
    check_values();
    find_bases();
    check_views();
    in_setup_ = true;
    for (std::size_t i = 0; i < plan_.setup.size(); ++i) check_step(i);
    in_setup_ = false;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) check_step(i);
    for (ValueId id = 0; id < plan_.values.size(); ++id) {
      const PlanValue::Kind kind = plan_.values[id].kind;
      const bool once = kind == PlanValue::Kind::output || kind == PlanValue::Kind::packed || is_part_[id];
      if (once && written_[id] != 1) {
        fail(fmt::format("{} is written {} times, not once", describe(id), written_[id]));
      }
    }
  }

 private:
  std::string describe(ValueId id) const {
    return fmt::format("{} '{}' (v{})", to_string(plan_.values[id].kind), plan_.values[id].name, id);
  }

  /// It runs before anything is looked up by ids.
  void check_ids() const {
    const std::size_t values = plan_.values.size();
    for (ValueId id = 0; id < values; ++id) {
      const PlanValue& value = plan_.values[id];
      if (value.donor && *value.donor >= values) fail(describe(id) + " has a donor that does not exist");
      if (value.inside && value.inside->whole >= id) {
        fail(describe(id) + " stands before the value that it lies in");
      }
    }
    for (const std::vector<Step>* steps : {&plan_.setup, &plan_.steps}) {
      for (const Step& step : *steps) {
        for (const std::vector<ValueId>* ids : {&step.reads, &step.writes}) {
          for (const ValueId id : *ids) {
            if (id >= values) fail(fmt::format("step '{}' uses v{}, which does not exist", step.name, id));
          }
        }
      }
    }
  }

  void check_values() const {
    int stage = 0;
    std::set<std::pair<int, std::string_view>> names;
    for (ValueId id = 0; id < plan_.values.size(); ++id) {
      const PlanValue& value = plan_.values[id];
      const int now = stage_of(value.kind);
      if (now < stage) fail(describe(id) + " stands after a later kind of value");
      stage = now;
      if (!names.insert({now, value.name}).second) fail(describe(id) + " has the name of another value");
      const auto constant = [](const Dim& dim) { return dim.is_constant(); };
      if (value.kind == PlanValue::Kind::packed &&
          !std::all_of(value.dims.begin(), value.dims.end(), constant)) {
        fail(describe(id) + " has extents that depend on the run");
      }
    }
  }

  void find_bases() {
    for (ValueId id = 0; id < plan_.values.size(); ++id) {
      const PlanValue& value = plan_.values[id];
      bases_.push_back(value.inside ? bases_[value.inside->whole] : id);
      if (!value.donor) continue;
      const PlanValue::Kind owner = plan_.values[*value.donor].kind;
      const bool takes = value.kind == PlanValue::Kind::output || value.kind == PlanValue::Kind::temporary;
      if (!takes || value.inside || owner != PlanValue::Kind::input) {
        fail(describe(id) + " cannot have the memory of " + describe(*value.donor));
      }
    }
  }

  /// The value whose memory it is.
  ValueId memory_of(ValueId id) const { return plan_.values[bases_[id]].donor.value_or(bases_[id]); }

  bool overwritten(ValueId id) const {
    const auto found = contents_.find(memory_of(id));
    return found != contents_.end() && found->second != bases_[id];
  }

  /// A value inside another is a part of it where steps write it, or parts of its own.
  void check_views() {
    is_part_ = written_values(plan_);
    const std::vector<bool> written = is_part_;
    std::vector<Parts> parts(plan_.values.size());
    for (ValueId id = static_cast<ValueId>(plan_.values.size()); id-- > 0;) {
      const PlanValue& value = plan_.values[id];
      missing_[id] = parts[id].size();
      if (missing_[id] > 0) {
        if (written[id]) fail(describe(id) + " is written, and so are values that lie in it");
        check_covered(id, parts[id]);
      }
      is_part_[id] = value.inside && (written[id] || missing_[id] > 0);
      if (!value.inside) continue;
      const auto& [whole, offset, is_rest] = *value.inside;
      if (value.kind != PlanValue::Kind::temporary) fail(describe(id) + " lies in another value");
      if (value.dtype != plan_.values[whole].dtype) fail(describe(id) + " has another type than its whole");
      if (offset.is_constant() && offset.constant() % view_alignment != 0) {
        fail(describe(id) + fmt::format(" lies at byte {} of {}", offset.constant(), describe(whole)));
      }
      if (is_rest && is_part_[id]) fail(describe(id) + " is written, and lies in strides");
      if (is_part_[id] && !parts[whole].emplace(offset, id).second) {
        fail(fmt::format("two values lie at byte {} of {}", offset.to_string(), describe(whole)));
      }
    }
  }

  struct Less {
    bool operator()(const Dim& a, const Dim& b) const { return compare(a, b) < 0; }
  };
  using Parts = std::map<Dim, ValueId, Less>;  // by offset

  /// The parts of a whole lie back to back.
  void check_covered(ValueId whole, const Parts& parts) const {
    Dim end = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto next = parts.find(end);
      if (next == parts.end())
        fail(fmt::format("nothing writes {} at byte {}", describe(whole), end.to_string()));
      end = end + bytes(next->second);
    }
    if (end != bytes(whole)) {
      fail(fmt::format("{} has {} bytes, its parts {}", describe(whole), bytes(whole).to_string(),
                       end.to_string()));
    }
  }

  Dim bytes(ValueId id) const {
    return product(plan_.values[id].dims) * static_cast<std::int64_t>(size_of(plan_.values[id].dtype));
  }

  /// Whether the value's contents are there: it is written, or all of its parts are. A view that no step
  /// writes is there where its whole is.
  bool complete(ValueId id) const {
    while (written_[id] == 0 && !is_part_[id] && plan_.values[id].inside) id = plan_.values[id].inside->whole;
    const PlanValue::Kind kind = plan_.values[id].kind;
    return written_[id] > 0 || kind == PlanValue::Kind::input || kind == PlanValue::Kind::parameter;
  }

  void write(ValueId id) {
    ++written_[id];
    while (is_part_[id]) {
      id = plan_.values[id].inside->whole;
      if (--missing_[id] > 0) return;
      ++written_[id];
    }
  }

  /// The order of the kinds of values; inputs and parameters share one position.
  static int stage_of(PlanValue::Kind kind) {
    return std::max(static_cast<int>(kind) - static_cast<int>(PlanValue::Kind::parameter), 0);
  }

  void check_step(std::size_t index) {
    const Step& step = (in_setup_ ? plan_.setup : plan_.steps)[index];
    const std::string where = fmt::format("{}step {} '{}' ", in_setup_ ? "setup " : "", index, step.name);
    Touches touches;
    std::visit(touches, step.work);
    std::set<ValueId> stated(step.reads.begin(), step.reads.end());
    stated.insert(step.writes.begin(), step.writes.end());
    for (const ValueId id : touches.values) {
      if (id >= plan_.values.size()) fail(where + fmt::format("uses v{}, which does not exist", id));
      if (!stated.contains(id)) fail(where + "uses " + describe(id) + " without stating it");
    }
    if (const auto* gemm = std::get_if<GemmStep>(&step.work)) {
      const bool adds = gemm->epilogue == EpilogueKind::bias || gemm->epilogue == EpilogueKind::add;
      if (adds != gemm->extra.has_value()) {
        fail(where + fmt::format("has {} for the epilogue {}", adds ? "no value" : "a value",
                                 schedule::to_string(gemm->epilogue)));
      }
    }
    if (const auto* gemm = std::get_if<GemmStep>(&step.work);
        gemm && gemm->layout && gemm->epilogue != EpilogueKind::none) {
      fail(where + "scatters the result of an epilogue");
    }
    if (const auto* gemm = std::get_if<GemmStep>(&step.work)) check_layouts(*gemm, where);
    if (step.continues && (index == 0 || in_setup_ || plan_.steps[index - 1].nodes != step.nodes)) {
      fail(where + "continues what the step before it did not begin");
    }
    if (const auto* kernel = std::get_if<KernelStep>(&step.work)) check_fallback(step, *kernel, where);
    for (const ValueId id : stated) {
      if (!touches.values.contains(id)) fail(where + fmt::format("states v{}, which it does not use", id));
    }
    if (const ValueId* target = std::visit(Destination{}, step.work)) {
      if (step.writes != std::vector{*target}) fail(where + "does not state what it writes");
      if (std::count(step.reads.begin(), step.reads.end(), *target)) fail(where + "reads what it writes");
    }
    for (const ValueId id : step.reads) {
      const PlanValue::Kind kind = plan_.values[bases_[id]].kind;
      if (in_setup_ && kind != PlanValue::Kind::parameter && kind != PlanValue::Kind::packed) {
        fail(where + "reads " + describe(id) + ", which only a run has");
      }
      if (overwritten(id)) fail(where + "reads " + describe(id) + " after it was overwritten");
      if (!complete(id)) fail(where + "reads " + describe(id) + " before it is written");
    }
    for (const ValueId id : step.writes) {
      const PlanValue::Kind kind = plan_.values[bases_[id]].kind;
      if (kind == PlanValue::Kind::input || kind == PlanValue::Kind::parameter) {
        fail(where + "writes " + describe(id));
      }
      if (in_setup_ != (kind == PlanValue::Kind::packed)) {
        fail(where + "writes " + describe(id) +
             (in_setup_ ? ", which only a run may" : " outside the setup"));
      }
      if (!step.continues || written_[id] == 0) write(id);
      if (!plan_.values[bases_[id]].donor) continue;
      contents_[memory_of(id)] = bases_[id];
      // A kernel may read an element and then write it.
      const bool is_kernel = std::holds_alternative<KernelStep>(step.work);
      const auto reads = [&](ValueId read) { return overwritten(read); };
      if (!is_kernel && std::any_of(step.reads.begin(), step.reads.end(), reads))
        fail(where + "reads what it overwrites");
    }
  }

  void check_layouts(const GemmStep& gemm, const std::string& where) const {
    const GemmLayout* first = nullptr;
    for (const std::optional<GemmLayout>* each : {&gemm.layout, &gemm.layout_a, &gemm.layout_b}) {
      if (!*each) continue;
      if (!first) first = &**each;
      if ((*each)->inner != first->inner || (*each)->outer != first->outer)
        fail(where + "has layouts of other batches");
    }
    if (first && !first->outer.is(1) && gemm.epilogue != EpilogueKind::none)
      fail(where + "makes several calls with an epilogue");
  }

  /// The fallback launches use the values of the kernel that they replace, and no others.
  void check_fallback(const Step& step, const KernelStep& whole, const std::string& where) const {
    if (!whole.fallback.empty() && !step.cooperative)
      fail(where + "has fallback launches and is not cooperative");
    std::set<ValueId> used;
    for (const KernelStep& launch : whole.fallback) {
      if (!launch.fallback.empty()) fail(where + "has a fallback launch that has fallback launches");
      used.insert(launch.buffers.begin(), launch.buffers.end());
    }
    for (const ValueId id : used) {
      if (std::count(whole.buffers.begin(), whole.buffers.end(), id)) continue;
      fail(where + fmt::format("has a fallback launch that uses v{}, which the kernel itself does not", id));
    }
  }

  const Plan& plan_;
  bool in_setup_ = false;
  std::vector<int> written_;
  std::vector<ValueId> bases_;           // for each value, what it lies in, or itself
  std::vector<bool> is_part_;            // written, and inside another value
  std::vector<std::size_t> missing_;     // for a value with parts, those that nothing has written yet
  std::map<ValueId, ValueId> contents_;  // for inputs that gave their memory, the value that lies there now
};

void check_bounds(const Plan& plan) {
  if (plan.most_bytes.empty()) return;
  const bool negative = std::any_of(plan.most_bytes.begin(), plan.most_bytes.end(),
                                    [](std::int64_t bytes) { return bytes < 0; });
  if (negative || plan.most_bytes.size() != plan.values.size())
    fail("the most bytes are not those of its values");
}

/// That there is an algorithm for each way through a table.
void check_algorithms(const Plan& plan) {
  for (const GemmAlgorithms& each : plan.algorithms) {
    verify(each.table);
    if (each.recorded.size() != each.table.versions)
      fail(fmt::format("a table of {} GEMM algorithms has {}", each.table.versions, each.recorded.size()));
  }
  for (const Step& step : plan.steps) {
    const auto* const gemm = std::get_if<GemmStep>(&step.work);
    if (gemm && gemm->algorithms && *gemm->algorithms >= plan.algorithms.size())
      fail(fmt::format("step '{}' has a table of algorithms that does not exist", step.name));
  }
}

/// What the steps of each version write that other steps use, too; and that they stand together.
void check_versions(const Plan& plan) {
  for (const VersionTable& table : plan.tables) verify(table);
  constexpr std::uint32_t nobody = ~std::uint32_t{0};
  std::vector<std::set<std::uint32_t>> users(
      plan.values.size());  // the tables whose steps use it, and nobody
  for (const Step& step : plan.steps) {
    if (step.version && (step.version->table >= plan.tables.size() ||
                         step.version->version >= plan.tables[step.version->table].versions))
      fail(fmt::format("step '{}' belongs to a version that does not exist", step.name));
    for (const std::vector<ValueId>* ids : {&step.reads, &step.writes}) {
      for (const ValueId id : *ids) {
        if (id < users.size()) users[id].insert(step.version ? step.version->table : nobody);
      }
    }
  }
  std::vector<std::vector<std::set<ValueId>>> written(plan.tables.size());
  for (std::size_t i = 0; i < plan.tables.size(); ++i) written[i].resize(plan.tables[i].versions);
  std::vector<std::uint32_t> began;  // tables in the order of their steps
  for (const Step& step : plan.steps) {
    const std::uint32_t table = step.version ? step.version->table : nobody;
    if (began.empty() || began.back() != table) {
      if (table != nobody && std::count(began.begin(), began.end(), table))
        fail(fmt::format("step '{}' stands apart from those of its versions", step.name));
      began.push_back(table);
    }
    if (table == nobody) continue;
    for (const ValueId id : step.writes) {
      const bool is_output = id < users.size() && plan.values[id].kind == PlanValue::Kind::output;
      if (is_output || (id < users.size() && users[id].size() > 1))
        written[table][step.version->version].insert(id);
    }
  }
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (std::size_t version = 1; version < written[i].size(); ++version) {
      if (written[i][version] != written[i][0])
        fail(fmt::format("versions 0 and {} of table {} write different values", version, i));
    }
  }
}

std::string version_text(const Step& step) {
  return step.version ? fmt::format(" version {} of table {}", step.version->version, step.version->table)
                      : std::string();
}

}  // namespace

std::string algorithms_text(const GemmAlgorithms& algorithms, std::size_t number) {
  std::string text = fmt::format("  algorithms {}, of {}:\n{}", number, algorithms.library,
                                 to_string(algorithms.table, "    ", "algorithm"));
  for (std::size_t i = 0; i < algorithms.recorded.size(); ++i)
    text +=
        fmt::format("    algorithm {}: {}\n", i,
                    algorithms.recorded[i].empty() ? "what the library proposes" : algorithms.recorded[i]);
  return text;
}

std::string print(const Plan& plan) {
  std::string text = "plan {\n";
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    const PlanValue& value = plan.values[id];
    text += fmt::format("  v{} {} {}: {}\n", id, to_string(value.kind), value.name,
                        ir::to_string(ir::Type{value.dtype, value.dims}) +
                            (value.donor ? fmt::format(" in v{}", *value.donor) : std::string()) +
                            (value.inside ? fmt::format(" in v{} at {}{}", value.inside->whole,
                                                        value.inside->offset_bytes.to_string(),
                                                        value.inside->is_rest ? ", to the end" : "")
                                          : std::string()));
  }
  for (std::size_t i = 0; i < plan.tables.size(); ++i)
    text += fmt::format("  table {}: {} versions\n{}", i, plan.tables[i].versions,
                        to_string(plan.tables[i], "    "));
  for (std::size_t i = 0; i < plan.algorithms.size(); ++i) text += algorithms_text(plan.algorithms[i], i);
  for (const bool setup : {true, false}) {
    const std::vector<Step>& steps = setup ? plan.setup : plan.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      text += fmt::format("  {}step {} {}: {}{}{} reads {} writes {} nodes {}\n", setup ? "setup " : "", i,
                          step.name, std::visit(PrintWork{}, step.work), version_text(step),
                          step.cooperative ? " cooperative"
                          : step.continues ? " continues"
                                           : "",
                          ids("v", step.reads), ids("v", step.writes), ids("%", step.nodes));
    }
  }
  return text + "}\n";
}

std::vector<ValueId> roots(const Plan& plan) {
  std::vector<ValueId> result;
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    const PlanValue& value = plan.values[id];
    const bool takes = value.donor && value.kind == PlanValue::Kind::temporary;
    const ValueId memory = value.inside ? value.inside->whole : takes ? *value.donor : id;
    result.push_back(memory < id ? result[memory] : id);
  }
  return result;
}

std::vector<bool> written_values(const Plan& plan) {
  std::vector<bool> written(plan.values.size());
  for (const std::vector<Step>* steps : {&plan.setup, &plan.steps}) {
    for (const Step& step : *steps) {
      for (const ValueId id : step.writes) {
        if (id < written.size()) written[id] = true;
      }
    }
  }
  return written;
}

Plan with_versions(const Plan& plan, std::span<const std::uint32_t> taken) {
  Plan result = plan;
  result.tables.clear();
  std::erase_if(result.steps, [&](const Step& step) {
    return step.version && taken[step.version->table] != step.version->version;
  });
  for (Step& step : result.steps) step.version.reset();
  return result;
}

std::vector<bool> used_by_setup(const Plan& plan) {
  std::vector<bool> used(plan.values.size());
  for (const Step& step : plan.setup) {
    for (const std::vector<ValueId>* ids : {&step.reads, &step.writes})
      for (const ValueId id : *ids) used[id] = true;
  }
  for (ValueId id = static_cast<ValueId>(plan.values.size()); id-- > 0;) {  // what it lies in comes before it
    const PlanValue& value = plan.values[id];
    used[id] = used[id] || value.kind == PlanValue::Kind::packed;
    if (used[id] && value.inside) used[value.inside->whole] = true;
    if (used[id] && value.donor) used[*value.donor] = true;
  }
  return used;
}

Plan setup_of(const Plan& plan) {
  Plan result;
  result.values = plan.values;
  result.setup = plan.setup;
  const std::vector<bool> used = used_by_setup(plan);
  for (std::size_t id = 0; id < used.size(); ++id) {
    if (used[id]) continue;
    PlanValue& value = result.values[id];
    value.dims = {0};
    value.donor.reset();
    value.inside.reset();
  }
  return result;
}

void verify(const Plan& plan) {
  if (plan.tables.empty()) {
    Verifier(plan).run();
    return;
  }
  check_versions(plan);
  check_algorithms(plan);
  check_bounds(plan);
  // Versions of one segment leave the same behind, so that each needs to be seen only once.
  std::uint32_t most = 0;
  for (const VersionTable& table : plan.tables) most = std::max(most, table.versions);
  for (std::uint32_t version = 0; version < most; ++version) {
    std::vector<std::uint32_t> taken;
    for (const VersionTable& table : plan.tables) taken.push_back(std::min(version, table.versions - 1));
    Verifier(with_versions(plan, taken)).run();
  }
}

Plan::Plan() = default;
Plan::Plan(const Plan&) = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(const Plan&) = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

}  // namespace fuse::schedule
