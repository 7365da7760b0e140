// From a graph to its first run on the fake device, with each call of the driver failing once: a named error,
// nothing leaks, and the next attempt is right. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <set>

#include "cuda/fake_device.hpp"
#include "support/examples.hpp"

namespace fuse::test {
namespace {

/// Compiles, prepares and runs layernorm; the first failure's text, or "".
std::string attempt(const Graph& graph) {
  try {
    const Executable executable = compile(graph, Device::cuda());
    WholeRun run(executable, {{"B", 16}});
    const Status status = run.run();
    return std::string((status ? run.stream.synchronize() : status).message());
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("each driver call from compile to run of layernorm fails once", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Graph graph = example("layernorm");
  std::vector<std::string> clean;
  {
    const Fakes fakes;
    REQUIRE(attempt(graph) == "");
    fakes.require_clean();
    for (int i = 0; i < fakes.call_count(); ++i) clean.push_back(fakes.call(i));
  }
  REQUIRE(clean.size() > 60);
  const auto function_of = [](const std::string& call) { return call.substr(0, call.find(' ')); };
  // The last synchronize is what the caller sees last: behind it only destructors run, which have nobody to
  // tell.
  std::size_t seen = clean.size();
  while (function_of(clean[seen - 1]) != "cuStreamSynchronize") --seen;

  std::set<std::string> failed;
  for (std::size_t n = 0; n < clean.size(); ++n) {
    const Fakes fakes;
    fakes.fail_at("", static_cast<int>(n) + 1, 999);
    const std::string text = attempt(graph);
    INFO("call " << n << ", " << clean[n] << ": " << text);
    if (n < seen) {
      CHECK(contains(text, function_of(clean[n]) + ": CUDA_ERROR_UNKNOWN (999)"));
      failed.insert(function_of(clean[n]));
    } else if (!text.empty()) {
      CHECK(contains(text, "CUDA_ERROR_UNKNOWN (999)"));  // the pop behind the synchronize
    }
    fakes.require_clean();
    const int before = fakes.call_count();
    CHECK(attempt(graph) == "");
    CHECK(fakes.call_count() - before == static_cast<int>(clean.size()));
    fakes.require_clean();
  }
  CHECK(failed.size() >= 12);
}

}  // namespace
}  // namespace fuse::test
#endif
