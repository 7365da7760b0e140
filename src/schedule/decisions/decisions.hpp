// Decisions: how a graph is cut into kernels and how these run, as a text that a person or a program may
// write.
//
//   fuse decisions 4
//   target {arch = 90, sms = 132, ...}
//   options {layers = 3, max_inputs = 48, ...}
//   measured {device = NVIDIA H200, gemms = cuBLASLt 130002}
//   # softmax: %7 div
//   stitch 23b5c1d8f0a4e6b7 yes
//   # softmax: %7 div
//   kernel 6f1c2a9be0d31455 {nest = r:grid c:serial c:warp8 c:lane32 c:vector8, register_cache = 32, packed}
//   kernel 6f1c2a9be0d31455 2 {nest = r:grid r:warp4 c:serial c:lane32}
//   versions 6f1c2a9be0d31455 {M, N; M <= 64 ? v0 : v1; v0 M = 16, N = 512; v1 M = 4096, N = 512}
//   kernel 6f1c2a9be0d31455 v0 {nest = r:grid c:warp8 c:lane32}
//   kernel 6f1c2a9be0d31455 v1 {nest = r:grid r:warp8 c:serial c:lane32}
//   # attention: %12 matmul
//   gemm 91b0c2d7e3f4a586 {algorithm = 2}
//   avoid 6f1c2a9be0d31455 {nest = r:grid c:serial c:lane32}
//   run {mode = graph, order = 0 2 1 3, streams = 0 0 1 0}
//
// A kernel is named by what it computes (content_key): equal kernels share an entry, and no name matters. A
// number after the key picks one of them, counted from 0 in the order of the plan, and overrides the entry
// for all. A kernel without an entry runs as the chooser says. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "ir/graph/question.hpp"
#include "plan/decision_line.hpp"
#include "plan/run_decision.hpp"
#include "schedule/decisions/measured.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/canonical.hpp"
#include "schedule/versions/versions.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

struct KernelDecision {
  std::uint64_t key = 0;
  std::optional<std::uint32_t> occurrence{};
  KernelChoices choices{};
  std::string note{};  ///< text of the comment above it
  int line = 0;        ///< line of the text; 0: none
};

/// Which algorithm a GEMM runs with (gemm_decisions.hpp).
struct GemmDecision {
  std::uint64_t key = 0;
  std::optional<std::uint32_t> occurrence{};
  std::uint32_t algorithm = 0;  ///< GemmAlgorithm::rank
  std::string note{};           ///< text of the comment above it
  int line = 0;                 ///< line of the text; 0: none
};

/// The answer to a question that a cost would answer (ir/graph/question.hpp). The key is a hash of what would
/// result.
struct Answer {
  ir::Question question = ir::Question::merge;
  std::uint64_t key = 0;
  std::optional<std::uint32_t> occurrence{};  ///< how many such questions with this key came before
  bool yes = false;
  std::string note{};  ///< text of the comment above it
  int line = 0;        ///< line of the text; 0: none
};

/// What stands in the braces of the line `options` (compile/pipeline/plan_options.hpp).
struct PlanOptionsText {
  std::string text{};
  int line = 0;
};

/// The versions of a kernel (schedule/versions), for any dims; one has as its choices what the line `kernel`
/// of its number says.
struct VersionsDecision {
  /// What a version is made for, and how it runs.
  struct Version {
    std::vector<std::pair<std::string, std::int64_t>> hints{};  ///< by symbol, in the order of `symbols`
    bool for_all = false;  ///< compiled for all dims, and not only for those that take it
    KernelChoices choices{};
    int line = 0;  ///< line of the text with its choices; 0: none
    bool operator==(const Version& other) const {
      return hints == other.hints && for_all == other.for_all && choices == other.choices;
    }
  };
  struct Test {
    std::string relation{};  ///< "M * N <= 2143289344"
    VersionTable::Branch yes{}, no{};
    bool operator==(const Test&) const = default;
  };
  std::uint64_t key = 0;
  std::optional<std::uint32_t> occurrence{};
  std::vector<std::string> symbols{};  ///< names for those of the graph, in their order
  std::vector<Test> tests{};
  std::vector<Version> each{};
  std::string note{};  ///< text of the comment above it
  int line = 0;        ///< line of the text; 0: none
  bool says_the_same(const VersionsDecision& other) const {
    return symbols == other.symbols && tests == other.tests && each == other.each;
  }
};

struct Decisions {
  std::string target{};  ///< target_text of the device that they are for
  std::optional<PlanOptionsText> options{};
  std::vector<Answer> answers{};  ///< in the order of the questions
  std::vector<KernelDecision> kernels{};
  std::vector<VersionsDecision> versions{};
  std::vector<GemmDecision> gemms{};
  std::vector<KernelDecision> avoided{};  ///< what an exploration does not try again: the device failed
  std::optional<RunDecision> run{};
  std::optional<Measured> measured{};
};

/// The part of a target that the decisions may depend on, without its name and speed.
std::string target_text(const Target&);
/// Turns such a text, whose keys may be in any order, into what target_text writes. Throws Error with code
/// parse: the line, the key, and what would be right.
std::string parse_target(std::string_view text, int line);

/// Throws Error with code invalid_argument where they are for another target.
void check_target(const Decisions&, const Target&);

std::string print(const Decisions&);
/// Throws Error with code parse: the line, the key, and what would be right.
Decisions parse_decisions(std::string_view text);

/// The versions of segments that have several.
using VersionsOfSegments = std::map<std::uint32_t, const Versions*>;

/// What was decided for each kernel segment, whose `chosen` is set, and for GEMMs that decisions were given
/// for.
Decisions decisions_of(const ir::Graph&, const Partition&, const EqualSegments&, const VersionsOfSegments&,
                       const Target&);

struct DecisionOptions {
  bool skip_unfit = false;    ///< entries that fit nothing are counted and left out; they are no error
  bool grid_barriers = true;  ///< kernels may wait for all of their blocks
};

/// Decisions for the segments of one graph.
class RecordedChoices {
 public:
  /// Throws Error with code invalid_argument where an entry fits no kernel of the graph: it names the line.
  RecordedChoices(const Decisions&, const DecisionOptions&, const ir::Graph&, const Partition&,
                  const EqualSegments&, const Target&);
  /// The choices of a segment; null where nothing was recorded.
  const KernelChoices* of(std::uint32_t segment) const;
  /// The versions of a segment; null where none were recorded.
  const Versions* versions_of(std::uint32_t segment) const;
  /// Segments that have an entry.
  std::size_t segments() const { return of_segment_.size() + versions_.size(); }
  std::size_t unfit() const { return unfit_; }

 private:
  void take_versions(const Decisions&, const DecisionOptions&, const ir::Graph&, const Partition&,
                     const std::map<std::uint64_t, std::vector<std::uint32_t>>& known, const Target&);

  std::map<std::uint32_t, KernelChoices> of_segment_{};
  std::map<std::uint32_t, Versions> versions_{};
  std::size_t unfit_ = 0;
};

/// Answers questions as recorded, else by cost, and keeps all answers that it gave. One compilation has one
/// book.
class AnswerBook {
 public:
  /// Throws Error with code invalid_argument where one question has two entries.
  explicit AnswerBook(const std::vector<Answer>& recorded);
  bool operator()(const ir::Asked&);
  /// Keeps an answer that somebody else gave, whatever is recorded.
  bool give(const ir::Asked&, bool yes);
  /// The number of entries that nobody asked for. Unless they are skipped, the first of them is an Error with
  /// code invalid_argument, which names the line.
  std::size_t unused(bool skip) const;
  /// One answer per key, and those of single questions whose answer differs.
  std::vector<Answer> answers() const;

 private:
  bool keep(const ir::Asked&, std::uint64_t key, std::uint32_t occurrence, bool yes);

  struct Name {
    ir::Question question = ir::Question::merge;
    std::uint64_t key = 0;
    std::optional<std::uint32_t> number{};
    auto operator<=>(const Name&) const = default;
  };
  struct Recorded {
    bool yes = false;
    int line = 0;
    bool used = false;
  };
  std::map<Name, Recorded> recorded_{};
  std::map<std::pair<ir::Question, std::uint64_t>, std::uint32_t> counts_{};
  std::vector<Answer> given_{};
};

/// Chooses as recorded for all kernels of a key, where such an entry fits; else as `otherwise`. Whoever
/// judges a fusion by it judges what will run. The graph and its `storage` (Partition's) outlive it.
Chooser recorded_first(const ir::Graph&, const std::vector<ir::NodeId>& storage, const Decisions&,
                       const DecisionOptions&, Chooser otherwise);

}  // namespace fuse::schedule
