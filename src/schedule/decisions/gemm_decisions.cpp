// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/gemm_decisions.hpp"

#include "schedule/decisions/decision_entries.hpp"

namespace fuse::schedule {
namespace {

SegmentsByKey gemms_by_key(const ir::Graph& graph, const Partition& partition) {
  const auto form_of = canonical_forms(graph, partition.storage);
  SegmentsByKey result;
  for (std::uint32_t i = 0; i < partition.segments.size(); ++i) {
    if (partition.segments[i].kind != Segment::Kind::gemm) continue;
    result[content_key(graph, form_of(partition.segments[i]))].push_back(i);
  }
  return result;
}

std::vector<GemmDecision> decisions_by(const ir::Graph& graph, const Partition& partition,
                                       std::optional<GemmAlgorithm> otherwise) {
  const auto rank = [&](std::uint32_t segment) -> std::optional<std::uint32_t> {
    const std::optional<GemmAlgorithm>& own = partition.segments[segment].algorithm;
    if (!own && !otherwise) return std::nullopt;
    return own ? own->rank : otherwise->rank;
  };
  std::vector<GemmDecision> result;
  summarise_entries(
      gemms_by_key(graph, partition), rank,
      [&](std::uint32_t segment, std::uint64_t key, std::optional<std::uint32_t> number) {
        result.push_back({key, number, *rank(segment), note_of(graph, partition.segments[segment].root)});
      });
  return result;
}

}  // namespace

std::size_t take_algorithms(const std::vector<GemmDecision>& decisions, bool skip_unfit,
                            const ir::Graph& graph, Partition& partition) {
  if (decisions.empty()) return 0;
  const SegmentsByKey known = gemms_by_key(graph, partition);
  std::size_t count = 0;
  match_entries(
      "gemm", graph.name, decisions, known,
      fmt::format("it has {} gemms. By other answers GEMMs may be merged, or have other epilogues: keep the "
                  "lines merge and epilogue",
                  known.size()),
      [&](const GemmDecision& entry, const std::vector<std::uint32_t>& segments) {
        for (const std::uint32_t segment : segments) {
          std::optional<GemmAlgorithm>& own = partition.segments[segment].algorithm;
          if (!own) own = GemmAlgorithm{entry.algorithm, entry.line};
        }
        return true;
      },
      [&](const GemmDecision& entry, const std::string& what, const std::string& hint) {
        ++count;
        if (!skip_unfit) refuse_entry(entry.line, what, hint);
      });
  return count;
}

std::vector<GemmDecision> of_library(const Decisions& decisions, const std::string& library, bool skip_unfit,
                                     std::size_t& unfit) {
  const std::string measured = decisions.measured ? decisions.measured->gemms : "";
  if (measured.empty() || library.empty() || measured == library) return decisions.gemms;
  std::vector<GemmDecision> result;
  for (const GemmDecision& entry : decisions.gemms) {
    if (entry.algorithm == 0) {  // what the library prefers, in each version
      result.push_back(entry);
      continue;
    }
    ++unfit;
    if (!skip_unfit)
      refuse_entry(
          entry.line,
          fmt::format("algorithm {} was measured with {}, and this machine has {}", entry.algorithm, measured,
                      library),
          "measure again, with fusec tune; or skip decisions that do not fit, and the library chooses");
  }
  return result;
}

std::vector<GemmDecision> gemm_decisions_of(const ir::Graph& graph, const Partition& partition) {
  return decisions_by(graph, partition, std::nullopt);
}

std::vector<GemmDecision> all_gemm_decisions_of(const ir::Graph& graph, const Partition& partition) {
  return decisions_by(graph, partition, GemmAlgorithm());
}

}  // namespace fuse::schedule
