// Weights on the cpu device: packed once, the same for all dims, and again after one was set.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <fuse/fuse.hpp>
#include <vector>

#include "fuzz/judge/execute.hpp"
#include "stitch/stitch_support.hpp"
#include "support/catch.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// bf16, which has panels on machines of every level.
Graph repeated(int times, const Dim& rows_of = {}, bool transposed = false) {
  Graph g("repeated");
  const Dim rows = rows_of.is(0) ? g.dim("B", {.min = 0, .max = 1000, .hint = 8}) : rows_of;
  Tensor x = g.input("x", bf16, {rows, 64});
  const Tensor w = g.parameter("w", bf16, {64, 64});
  for (int i = 0; i < times; ++i) x = tanh(matmul(x, transposed ? transpose(w, {1, 0}) : w));
  g.output("y", x);
  return g;
}

std::vector<std::byte> numbers(std::int64_t count, float scale) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * 2);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = scale * static_cast<float>(i % 7 - 3);  // few bits: exact in bf16
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) >> 16;
    bytes[static_cast<std::size_t>(2 * i)] = static_cast<std::byte>(bits);
    bytes[static_cast<std::size_t>(2 * i + 1)] = static_cast<std::byte>(bits >> 8);
  }
  return bytes;
}

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto bits =
        std::to_integer<std::uint32_t>(bytes[i]) << 16 | std::to_integer<std::uint32_t>(bytes[i + 1]) << 24;
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

}  // namespace

TEST_CASE("cpu: a weight is packed once, whoever reads it and for all dims", "[cpu][gemm][emulated]") {
  const Device cpu = Device::cpu();
  const Executable one = compile(repeated(1), cpu), three = compile(repeated(3), cpu);
  const std::int64_t bytes = three.prepare({{"B", 40}}).packed_bytes();
  CHECK(bytes >= 64 * 64 * 2);
  CHECK(one.prepare({{"B", 40}}).packed_bytes() == bytes);
  for (const std::int64_t rows : {0, 1, 4, 5, 1000}) {
    INFO(rows << " rows");
    const Prepared prepared = three.prepare({{"B", rows}});
    CHECK(prepared.packed_bytes() == bytes);
    // Very few rows read the weight as it lies.
    if (rows > 0) CHECK(prepared.reads_in_run(three.slot("w")) == (rows <= 4));
  }
  CHECK(compile(repeated(3, 4), cpu).prepare({}).packed_bytes() == 0);
  CHECK(compile(repeated(3, 5), cpu).prepare({}).packed_bytes() == bytes);
}

TEST_CASE("cpu: products of packed weights are those of the weights", "[cpu][gemm][emulated]") {
  for (const bool transposed : {false, true}) {
    for (const std::int64_t rows : {1, 7, 300}) {
      INFO(rows << " rows" << (transposed ? ", transposed" : ""));
      fuzz::RunOptions options;
      options.profile = "cpu";
      fuzz::Case judged = case_of(repeated(2, {}, transposed), options);
      judged.program.bindings = {{{"B", rows}}};
      fuzz::Batch batch({std::move(judged)});
      const fuzz::Outcome outcome = batch.run(0);
      INFO(outcome.text);
      CHECK(outcome.verdict == fuzz::Verdict::ok);
    }
  }
}

TEST_CASE("cpu: a session packs again after a weight was set", "[cpu][gemm][emulated]") {
  const Executable executable = compile(repeated(1), Device::cpu());
  Session session(executable, {{"B", 8}});
  session.set("x", numbers(8 * 64, 0.25F));
  session.set("w", numbers(64 * 64, 0.125F));
  session.run();
  const std::vector<float> first = floats(session.get("y"));
  session.set("w", numbers(64 * 64, -0.125F));
  session.run();
  const std::vector<float> second = floats(session.get("y"));
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < first.size(); ++i) wrong += second[i] != -first[i];  // tanh is odd
  CHECK(wrong == 0);
  CHECK(std::count(first.begin(), first.end(), 0.0F) < 256);
}
