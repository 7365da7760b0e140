// A process that forked has no GPU: every call says so, and what is destroyed there leaves the driver alone.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "cuda/fake_device.hpp"

namespace fuse::test {
namespace {

/// Whether all is as it should be, in a child of this process. No Catch2 there: it would report twice.
template <class F>
bool in_child(F&& all_is_well) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(all_is_well() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool says_forked(const Status& status) {
  return status.code() == ErrorCode::driver && contains(status.message(), "this process was forked");
}

TEST_CASE("after a fork the child gets a named status, and the parent goes on", "[cuda][lifetime]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
    INFO(to_string(mode));
    {
      const Executable executable = compile(branches(2), Device::cuda());
      std::optional<WholeRun> run(std::in_place, executable, DimValues{}, WorkspaceOptions{mode});
      REQUIRE(run->run());
      const int before = fakes.call_count();
      CHECK(in_child([&] { return says_forked(run->run()); }));
      CHECK(in_child([&] { return says_forked(run->stream.synchronize()); }));
      CHECK(in_child([&] {
        try {
          executable.device().allocate(64);
        } catch (const Error& error) {
          return error.code() == ErrorCode::driver;
        }
        return false;
      }));
      // The child's copies go without a call.
      CHECK(in_child([&] {
        run.reset();
        return fakes.call_count() == before;
      }));
      // A device that the child opens is its own.
      CHECK(in_child([&] {
        WholeRun own(compile(branches(2), Device::cuda()), {}, {mode});
        return static_cast<bool>(own.run());
      }));
      CHECK(fakes.call_count() == before);
      CHECK(run->run());
    }
    fakes.require_clean();
  }
}

}  // namespace
}  // namespace fuse::test
#endif
