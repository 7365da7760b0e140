// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/generated_answers.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/judge/execute.hpp"
#include "ir/text/print.hpp"

namespace fuse::fuzz {
namespace {

using runtime::HostTensor;

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}
std::string hexadecimal(std::string_view text) {
  return hexadecimal(std::as_bytes(std::span(text.data(), text.size())));
}
std::string hexadecimal(const HostTensor& tensor) {
  return hexadecimal(std::as_bytes(std::span(tensor.data)));
}

void say(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void say_run(const ir::Graph& graph, const Observed& seen) {
  std::string line = "run";
  for (const ir::Symbol& symbol : graph.symbols) line += fmt::format(" {}", seen.dims.at(symbol.name));
  say(line);
  for (const ir::Node& node : graph.nodes) {
    if (const auto* named = std::get_if<ir::NameAttr>(&node.attr))
      say("input " + hexadecimal(seen.inputs.at(named->name)));
  }
  for (const ir::Output& output : graph.outputs) {
    const Enclosure& expected = seen.expected.at(output.name);
    say(fmt::format("output {} {} {}", hexadecimal(seen.results.at(output.name)),
                    hexadecimal(expected.least().to_host()), hexadecimal(expected.greatest().to_host())));
  }
}

}  // namespace

int answer(std::uint64_t seed, std::uint64_t first, std::int64_t count) {
  std::vector<Case> cases;
  std::vector<ir::Graph> graphs;
  for (std::int64_t i = 0; i < count; ++i) {
    cases.push_back(generate(seed_of(seed, first + static_cast<std::uint64_t>(i))));
    graphs.push_back(cases.back().program.graph);
  }
  Batch batch(std::move(cases));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    say(fmt::format("program {}", first + i));
    say("graph " + hexadecimal(ir::print(graphs[i])));
    const Outcome outcome = batch.run(i, [&](const Observed& seen) { say_run(graphs[i], seen); });
    say(fmt::format("done {} {}", to_string(outcome.verdict), hexadecimal(outcome.text)));
  }
  return 0;
}

}  // namespace fuse::fuzz
