// What does not fit together in a program that was read from a file is named.
// SPDX-License-Identifier: Apache-2.0
#include "compile/program_of.hpp"
#include "plan/program.hpp"
#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

/// What verify says of the program that is made by hand, after a change; empty if nothing is wrong.
template <class F>
std::string after(const F& change) {
  const Compiled compiled = by_hand();
  runtime::Program program = runtime::program_of(compiled.graph, compiled);
  change(program);
  const std::string text = error_of([&] { verify(program); });
  const std::string start = "internal: internal error: ";
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

using Program = runtime::Program;

TEST_CASE("programs: numbers of a kernel may be as large as any device takes", "[runtime]") {
  const std::string nothing = after([](Program&) {});
  CHECK(after([](Program& p) {
          p.kernels[0].block_threads = 1024;
          p.kernels[0].cluster = 16;
          p.kernels[0].blocks_per_sm = 1024;
          p.kernels[0].shared_bytes = 1 << 20;
        }) == nothing);
  CHECK(after([](Program& p) {
          p.kernels[0].block_threads = 1;
          p.kernels[0].blocks_per_sm = 0;
          p.kernels[0].shared_bytes = 0;
        }) == nothing);
  CHECK(after([](Program& p) { p.kernels[0].block_threads = 1025; }) ==
        "kernel 'scale' has 1025 threads a block, where 1 to 1024 are possible");
  CHECK(after([](Program& p) { p.kernels[1].block_threads = 0; }) ==
        "kernel 'shift' has 0 threads a block, where 1 to 1024 are possible");
  CHECK(after([](Program& p) { p.kernels[0].cluster = 17; }) ==
        "kernel 'scale' has 17 blocks a cluster, where 1 to 16 are possible");
  CHECK(after([](Program& p) { p.kernels[0].cluster = 0; }) ==
        "kernel 'scale' has 0 blocks a cluster, where 1 to 16 are possible");
  CHECK(after([](Program& p) { p.kernels[0].blocks_per_sm = -1; }) ==
        "kernel 'scale' has -1 blocks per multiprocessor, where 0 to 1024 are possible");
  CHECK(after([](Program& p) { p.kernels[0].blocks_per_sm = 1025; }) ==
        "kernel 'scale' has 1025 blocks per multiprocessor, where 0 to 1024 are possible");
  CHECK(after([](Program& p) { p.kernels[0].shared_bytes = -1; }) ==
        "kernel 'scale' has -1 bytes of shared memory, where 0 to 1048576 are possible");
  CHECK(after([](Program& p) { p.kernels[0].shared_bytes = (1 << 20) + 1; }) ==
        "kernel 'scale' has 1048577 bytes of shared memory, where 0 to 1048576 are possible");
}

TEST_CASE("programs: streams are as many as a plan may have", "[runtime]") {
  const std::string nothing = after([](Program&) {});
  const std::string many = "the plan asks for more than 16 streams";
  CHECK(after([](Program& p) { p.streams.max_streams = 1; }) == nothing);
  CHECK(after([](Program& p) { p.streams.max_streams = 16; }) == nothing);
  CHECK(after([](Program& p) { p.streams.max_streams = 17; }) == many);
  CHECK(after([](Program& p) { p.streams.max_streams = 0; }) == many);
  CHECK(after([](Program& p) { p.streams.stream = {0, 15, 0}; }) == nothing);
  CHECK(after([](Program& p) { p.streams.stream = {0, 16, 0}; }) == many);
}

TEST_CASE("programs: slots, donors, origins, groups and parts are those of the plan", "[runtime]") {
  CHECK(after([](Program& p) { p.signature.slots.pop_back(); }) ==
        "the plan has 4 inputs, parameters and outputs, the graph 3");
  CHECK(after([](Program& p) { p.signature.slots[1].kind = Slot::Kind::input; }) ==
        "value 1 of the plan is not the graph's input 'w'");
  CHECK(after([](Program& p) { p.signature.slots[0].name = "other"; }) ==
        "value 0 of the plan is not the graph's input 'other'");
  const std::string other = "has the memory of another value than the plan says";
  CHECK(after([](Program& p) { p.plan.values[2].donor = 0; }) == "the output 'y' " + other);
  CHECK(after([](Program& p) { p.signature.slots[2].donor = 0; }) == "the output 'y' " + other);
  CHECK(after([](Program& p) { p.plan.values[2].donor = p.signature.slots[2].donor = 0; }) ==
        after([](Program&) {}));
  CHECK(after([](Program& p) { p.signature.slots[0].donor = 0; }) == "the input 'x' " + other);
  CHECK(after([](Program& p) { p.signature.slots[2].donor = 1; }) == "the output 'y' " + other);
  CHECK(after([](Program& p) { p.signature.slots[2].donor = 4; }) == "the output 'y' " + other);
  for (const std::size_t no_input : {1, 2})  // a parameter, the output itself
    CHECK(after([&](Program& p) { p.plan.values[2].donor = p.signature.slots[2].donor = no_input; }) !=
          after([](Program&) {}));
  CHECK(after([](Program& p) { p.plan.steps[1].origin = static_cast<std::uint32_t>(p.origins.size()); }) ==
        "step 'shift': there is no origin 3");
  CHECK(after([](Program& p) { p.origins[0].group = schedule::no_group; }) == after([](Program&) {}));
  CHECK(after([](Program& p) { p.origins[0].group = static_cast<schedule::GroupId>(p.groups.size()); }) ==
        "there is no group 0");
  CHECK(after([](Program& p) {
          auto& work = std::get<schedule::KernelStep>(p.plan.steps[0].work);
          p.plan.steps[0].cooperative = true;
          work.fallback = {work};
          work.fallback[0].kernel = 2;
        }) == "step 'scale': there is no kernel 2 for a part");
}

}  // namespace
}  // namespace fuse::test
