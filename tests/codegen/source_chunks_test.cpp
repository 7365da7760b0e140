// A source in chunks: every kernel and every line once, in order. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "codegen_cuda/text/print_cuda.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"

using namespace fuse;  // NOLINT

namespace {

codegen::Source twenty_kernels() {
  Graph g("twenty");
  for (int i = 0; i < 20; ++i) {
    const std::string n = std::to_string(i);
    g.output("y" + n, sum(exp(g.input("x" + n, f32, {10, 16 + i})), {i % 2}));
  }
  PipelineOptions options;
  options.partition.horizontal = false;
  return run_pipeline(ir_of(g), target_profile("h200"), options).source;
}

}  // namespace

TEST_CASE("chunks cover a source, each with whole kernels", "[codegen][chunks]") {
  const codegen::Source source = twenty_kernels();
  REQUIRE(source.kernels.size() == 20);
  REQUIRE(source.starts.size() == 20);
  const std::string text = source.text();
  for (const std::size_t most : {0, 1, 2, 3, 7, 20, 1000}) {
    INFO("at most " << most);
    const auto chunks = codegen::chunks(source, most);
    CHECK(chunks.size() >= std::min<std::size_t>(most, 2) / 2);
    CHECK(chunks.size() <= std::max<std::size_t>(most, 1));
    if (most == 20 || most == 1000) CHECK(chunks.size() >= 15);
    std::size_t kernel = 0, offset = 0;
    for (const codegen::SourceChunk& chunk : chunks) {
      CHECK(chunk.first == kernel);
      CHECK(chunk.begin == offset);
      REQUIRE(chunk.last > chunk.first);
      kernel = chunk.last;
      offset = chunk.end;
      // It starts at the comment of its first kernel, on the line it says, and ends before the next one's.
      const std::string first = "// " + source.kernels[chunk.first].name + ": ";
      CHECK(source.body.compare(chunk.begin, first.size(), first) == 0);
      const auto line_starts =
          std::count(text.begin(),
                     text.begin() + static_cast<std::ptrdiff_t>(source.prelude.size() + chunk.begin), '\n');
      CHECK(chunk.line == line_starts + 1);
      for (std::size_t i = chunk.first; i < chunk.last; ++i) {
        const std::size_t at = source.body.find(") " + source.kernels[i].name + "(");
        CHECK((chunk.begin < at && at < chunk.end));
      }
      if (most == 2 || most == 3) {  // about the same length
        CHECK((chunk.end - chunk.begin) * chunks.size() < 2 * source.body.size());
      }
    }
    CHECK(kernel == 20);
    CHECK(offset == source.body.size());
  }
}

TEST_CASE("a source without starts is one chunk", "[codegen][chunks]") {
  codegen::Source source = twenty_kernels();
  source.starts.clear();
  const auto chunks = codegen::chunks(source, 8);
  REQUIRE(chunks.size() == 1);
  CHECK(chunks[0].last == 20);
  CHECK(chunks[0].end == source.body.size());
}

TEST_CASE("a kernel's text stands behind what it calls and nothing else", "[codegen][chunks]") {
  const codegen::Source source = twenty_kernels();
  CHECK(codegen::prelude_of(source.body) == source.prelude);
  CHECK(codegen::prelude_of("").size() < source.prelude.size());
}

TEST_CASE("kernels are printed the same on several threads, with a barrier left out too",
          "[codegen][chunks]") {
  Graph g("rows");
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    g.output("y" + n, sum(g.input("x" + n, f32, {3, 2000 + i}), {1}));
  }
  const Target target = target_profile("h200");
  for (const int barrier : {-1, 0, 3, 5}) {
    const auto fault = barrier < 0 ? std::nullopt : parse_fault("barrier." + std::to_string(barrier));
    const PipelineOptions one{.fault = fault, .threads = 1}, four{.fault = fault, .threads = 4};
    const codegen::Source a = run_pipeline(ir_of(g), target, one).source,
                          b = run_pipeline(ir_of(g), target, four).source;
    CHECK(a == b);
    std::size_t barriers = 0;
    for (std::size_t at = a.body.find("block_barrier()"); at != std::string::npos;
         at = a.body.find("block_barrier()", at + 1)) {
      ++barriers;
    }
    CHECK(barriers == (barrier < 0 ? 6 : 5));
  }
}
