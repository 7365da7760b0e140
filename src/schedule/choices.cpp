// SPDX-License-Identifier: Apache-2.0
#include "schedule/choices.hpp"

#include <fmt/format.h>

namespace fuse::schedule {

std::string_view to_string(Mapping mapping) {
  switch (mapping) {
    case Mapping::element:
      return "element";
    case Mapping::tile:
      return "tile";
    case Mapping::row_warp:
      return "row_warp";
    case Mapping::row_block:
      return "row_block";
    case Mapping::column_tile:
      return "column_tile";
    case Mapping::split:
      return "split";
    case Mapping::scan_warp:
      return "scan_warp";
    case Mapping::scan_thread:
      return "scan_thread";
  }
  return "?";
}

std::string Choices::to_string() const {
  std::string text = fmt::format("mapping = {}, block = {}", schedule::to_string(mapping), block_threads);
  if (parts > 1) text += fmt::format(", parts = {}", parts);
  if (cluster) text += ", cluster";
  if (blocks > 0) text += fmt::format(", blocks = {}", blocks);
  if (vector > 1) text += fmt::format(", vector = {}", vector);
  if (lanes < 32) text += fmt::format(", lanes = {}", lanes);
  if (online) text += ", online";
  if (across) text += ", across";
  if (hold > 0) text += fmt::format(", hold = {}", hold);
  if (packed) text += ", packed";
  if (shared_hold > 0) text += fmt::format(", shared_hold = {}", shared_hold);
  return text;
}

std::string KernelChoices::to_string() const {
  if (phases.size() == 1) return phases[0].to_string();
  std::string text = fmt::format("block = {}, blocks = {}", block_threads(), blocks);
  for (const Choices& phase : phases) text += fmt::format(", phase {{{}}}", phase.to_string());
  return text;
}

int rows_at_once(const Choices& choices) {
  return choices.mapping == Mapping::row_warp ? choices.block_threads / choices.lanes : 1;
}

std::int64_t step_elements(const Choices& choices) {
  std::int64_t threads = choices.block_threads;
  if (choices.mapping == Mapping::row_warp) threads = choices.lanes;
  if (choices.mapping == Mapping::column_tile) threads = choices.block_threads / choices.lanes;
  if (choices.mapping == Mapping::split) threads *= choices.parts;
  return threads * choices.vector;
}

std::int64_t row_trips(const Dim& reduced, const Choices& choices) {
  const std::int64_t most = reduced.max();
  if (most / 8 > reduced.hint()) return 0;
  const std::int64_t at_once = step_elements(choices);
  return (most + at_once - 1) / at_once * choices.vector;
}

}  // namespace fuse::schedule
