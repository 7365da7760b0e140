// What prepare keeps of the last dims. SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/prepared_shapes.hpp"

#include <fuse/fuse.hpp>
#include <thread>
#include <vector>

#include "base/access.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "support/catch.hpp"

using namespace fuse;  // NOLINT

namespace {

Executable doubled() {
  Graph g("doubled");
  g.output("y", g.input("x", f32, {g.dim("B", {.min = 0, .max = 100}), 4}) * 2.0F);
  return compile(g, Device::reference());
}

/// What a Prepared refers to.
const void* made_for(const Executable& executable, std::int64_t b) {
  return impl_of(executable.prepare({{"B", b}}).workspace())->prepared.get();
}

}  // namespace

TEST_CASE("prepare: what was made for dims is given again", "[versions][runtime]") {
  const Executable executable = doubled(), copy = executable;
  const Prepared held = executable.prepare({{"B", 3}});  // so that no other can lie at its address
  const void* const first = made_for(executable, 3);
  CHECK(made_for(executable, 3) == first);
  CHECK(made_for(copy, 3) == first);
  CHECK(made_for(executable, 4) != first);
  CHECK(held.shape(0) == std::vector<std::int64_t>{3, 4});
  CHECK(made_for(doubled(), 3) != first);  // another executable
}

TEST_CASE("prepare: the last dims are kept, and no more", "[versions][runtime]") {
  const Executable executable = doubled();
  const Prepared held = executable.prepare({{"B", 0}});
  const void* const first = made_for(executable, 0);
  constexpr auto most = static_cast<std::int64_t>(runtime::PreparedShapes::most);
  for (std::int64_t b = 1; b < most; ++b) executable.prepare({{"B", b}});
  CHECK(made_for(executable, 0) == first);  // it is the last one now
  for (std::int64_t b = 1; b < most; ++b) executable.prepare({{"B", most + b}});
  CHECK(made_for(executable, 0) == first);
  for (std::int64_t b = 1; b <= most; ++b) executable.prepare({{"B", b}});
  CHECK(made_for(executable, 0) != first);
}

TEST_CASE("prepare: dims that are refused are refused again", "[versions][runtime]") {
  const Executable executable = doubled();
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(executable.prepare({{"B", 101}}), Error);
}

TEST_CASE("prepare: threads share what is kept", "[versions][runtime]") {
  const Executable executable = doubled();
  std::vector<std::thread> threads;
  std::vector<std::int64_t> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 300; ++i) {
        const std::int64_t b = (i * 7 + static_cast<std::int64_t>(t)) % 50;
        wrong[t] += executable.prepare({{"B", b}}).shape(0)[0] != b;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<std::int64_t>(4));
}
