// A device remembers what it compiled. SPDX-License-Identifier: Apache-2.0
#include "compile/cache/compile_cache.hpp"

#include <thread>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "runtime/device/toolchain.hpp"
#include "runtime/runtime_support.hpp"
#include "support/variable.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using runtime::BoundedCache;

namespace {

struct Made {
  double constant = 2;
  std::string name = "remembered", input = "x", output = "y", scope = "s";
  std::int64_t extent = 64;
  DType dtype = f32;
  std::int64_t most = 100;
};

Graph make(const Made& made = {}) {
  Graph g(made.name);
  const Dim B = g.dim("B", {.min = 1, .max = made.most});
  const auto scope = g.scope(made.scope);
  g.output(made.output, g.input(made.input, made.dtype, {B, made.extent}) * made.constant);
  return g;
}

std::string counts(const Device& device) {
  const auto text = [](const auto& of) {
    return std::to_string(of.hits) + "/" + std::to_string(of.hits + of.misses) + " of " +
           std::to_string(of.held);
  };
  runtime::CompileCache& cache = backend_of(device)->toolchain()->cache();
  return "graphs " + text(cache.stages.counts()) + ", texts " + text(cache.modules.counts());
}

float first_result(const Executable& executable) {
  Session session(executable, {{"B", 1}});
  session.set("x", bytes_of(std::vector<float>(64, 3)));
  session.run();
  return values_of<float>(session.get("y"))[0];
}

struct Number {
  int value = 0;
  std::size_t heavy = 1;
  std::uint64_t hash() const { return static_cast<std::uint64_t>(value % 2); }  // most collide
  std::size_t weight() const { return heavy; }
  bool operator==(const Number& other) const { return value == other.value; }
};

}  // namespace

TEST_CASE("a second compile of an equal graph is a hit", "[runtime][cache][emulated]") {
  const Device device = Device::emulated();
  CHECK(device.report().find("compiled graphs") == std::string::npos);
  const Executable first = compile(make(), device);
  CHECK(counts(device) == "graphs 0/1 of 1, texts 0/1 of 1");
  const Executable second = compile(make(), device);
  CHECK(counts(device) == "graphs 1/2 of 1, texts 0/1 of 1");
  CHECK(&stages_of(first) == &stages_of(second));
  CHECK(first_result(first) == 6);
  CHECK(first_result(second) == 6);
  compile(make(), device, {.threads = 2});  // threads change nothing of what is made
  CHECK(counts(device) == "graphs 2/3 of 1, texts 0/1 of 1");
  CHECK(device.report().find("\n\ncompiled graphs") == std::string::npos);
  CHECK(device.report().find("\ncompiled graphs: 3 looked up, 2 found, 1 held\n"
                             "compiled texts: 1 looked up, 0 found, 1 held\n") != std::string::npos);
  const Device copy = device;  // a handle to the same device
  compile(make(), copy);
  CHECK(counts(device) == "graphs 3/4 of 1, texts 0/1 of 1");
  const Device other = Device::emulated();
  compile(make(), other);
  CHECK(counts(other) == "graphs 0/1 of 1, texts 0/1 of 1");
}

TEST_CASE("graphs that differ in anything are no hit", "[runtime][cache][emulated]") {
  const Device device = Device::emulated();
  compile(make(), device);
  const Made others[] = {{.constant = 3}, {.name = "other"}, {.input = "z"}, {.output = "z"},
                         {.scope = "t"},  {.extent = 65},    {.dtype = f64}, {.most = 1'000}};
  std::size_t looked_up = 1;
  for (const Made& other : others) {
    compile(make(other), device);
    ++looked_up;
    const auto counts = backend_of(device)->toolchain()->cache().stages.counts();
    CHECK(counts.hits == 0);
    CHECK(counts.misses == looked_up);
  }
  compile(make(), device, {.experiments = experiments({.fault = "extent.0+1"})});
  CHECK(backend_of(device)->toolchain()->cache().stages.counts().hits == 0);
  // An output's name is no part of the text: the module serves both.
  CHECK(backend_of(device)->toolchain()->cache().modules.counts().hits >= 1);
}

TEST_CASE("a fault of the environment is one of the options: what is remembered is without it",
          "[runtime][cache][emulated]") {
  const Device device = Device::emulated();
  const auto hits = [&] { return backend_of(device)->toolchain()->cache().stages.counts().hits; };
  compile(make(), device);
  {
    const Variable fault("FUSE_FAULT", "extent.0+1");
    compile(make(), device);
    CHECK(hits() == 0);
    compile(make(), device, {.experiments = experiments({.fault = "extent.0+1"})});
    CHECK(hits() == 1);
  }
  compile(make(), device);
  CHECK(hits() == 2);
  for (const char* unknown : {"barrier", "rewrite.no_such_pass.0", "extent.0+2"}) {
    INFO(unknown);
    CHECK_THROWS_WITH(compile(make(), device, {.experiments = experiments({.fault = unknown})}),
                      Catch::Contains("there is no fault '" + std::string(unknown) + "'"));
  }
  CHECK_THROWS_WITH(compile(make(), device, {.experiments = experiments({.fault = "rewrite.simplify.9999"})}),
                    Catch::Contains("after simplify there is no site 9999 for a wrong rewrite"));
}

TEST_CASE("graphs that were built on other lines are no hit: errors name the lines", "[runtime][cache]") {
  const auto key = [](const Graph& graph) {
    return runtime::GraphKey(std::make_shared<const ir::Graph>(ir_of(graph)), {});
  };
  Graph a("lines"), b("lines"), c("lines");
  const auto build = [](Graph& g) { g.output("y", g.input("x", f32, {4})); };
  build(a);
  build(b);
  c.output("y", c.input("x", f32, {4}));
  CHECK(key(a) == key(b));
  CHECK(key(a).hash() == key(b).hash());
  CHECK_FALSE(key(a) == key(c));
}

TEST_CASE("threads that compile one graph share it", "[runtime][cache][emulated]") {
  const Device device = Device::emulated();
  std::vector<std::thread> threads;
  std::vector<float> results(6);
  for (float& result : results) {
    threads.emplace_back([&] { result = first_result(compile(make(), device)); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results == std::vector<float>(6, 6));
  const auto counts = backend_of(device)->toolchain()->cache().stages.counts();
  CHECK(counts.hits + counts.misses == 6);
  CHECK(counts.held == 1);
}

TEST_CASE("what a device remembers does not keep it alive, and outlives its executables",
          "[runtime][cache][emulated]") {
  std::weak_ptr<runtime::Backend> backend;
  {
    const Device device = Device::emulated();
    backend = backend_of(device);
    { CHECK(first_result(compile(make(), device)) == 6); }
    CHECK(first_result(compile(make(), device)) == 6);
    CHECK(counts(device) == "graphs 1/2 of 1, texts 0/1 of 1");
  }
  CHECK(backend.expired());
  const Executable last = compile(make(), Device::emulated());  // the other way round
  CHECK(first_result(last) == 6);
}

TEST_CASE("a bounded cache drops what was not used longest", "[runtime][cache]") {
  BoundedCache<Number, int> cache(3, 100);
  const auto insert = [&](int value, std::size_t weight = 1) {
    cache.insert({value, weight}, std::make_shared<const int>(10 * value));
  };
  const auto has = [&](int value) {
    const auto found = cache.find({value});
    CHECK((!found || *found == 10 * value));
    return found != nullptr;
  };
  for (const int i : {1, 2, 3}) insert(i);
  CHECK(has(1));
  insert(4);
  CHECK_FALSE(has(2));
  CHECK((has(1) && has(3) && has(4)));
  insert(5, 99);  // heavy: beside one more it fits
  CHECK((has(5) && has(4)));
  CHECK_FALSE((has(1) || has(3)));
  insert(6, 101);  // too heavy for all of it
  CHECK_FALSE(has(6));
  CHECK((has(5) && has(4)));
  insert(4);  // it is there
  CHECK(cache.counts().held == 2);
  CHECK(cache.counts().hits == 8);
  CHECK(cache.counts().misses == 4);
}
