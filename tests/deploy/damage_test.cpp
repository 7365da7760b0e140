// Saved plans that are damaged, foreign or hostile: a named error, and nothing of them is run.
// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <random>

#include "deploy/deploy_support.hpp"
#include "runtime/runtime_support.hpp"
#include "runtime/saved/container.hpp"
#include "runtime/saved/fields.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

/// A softmax of rows of any length beside a GEMM: slots, dims, a guard, kernels and a GEMM step.
Graph small_graph() {
  Graph g("small");
  const Dim B = g.dim("B", {.min = 1, .max = 64}), N = g.dim("N", {.min = 1, .max = 512});
  g.assume(divisible(N, 4));
  const Tensor x = g.input("x", f32, {B, N});
  g.output("y", softmax(x));
  g.output("z", matmul(g.input("a", f32, {B, 4}), g.parameter("w", f32, {4, 4})));
  return g;
}

std::string saved_plan() {
  const Folder folder;
  compile(small_graph(), Device::emulated({.profile = "tiny3", .optimization = 0})).save(folder / "plan");
  return contents_of(folder / "plan");
}

/// What parsing and checking says; nothing is loaded.
std::string said_of(std::string_view file) {
  return error_of([&] {
    for (runtime::SavedTarget& target : runtime::parse_plan_file(file, "plan")) {
      runtime::runnable(std::move(target), "plan");
    }
  });
}

/// The file without its kernels, whose bytes are long and mean nothing here.
std::string without_images(const std::string& file) {
  std::vector<runtime::SavedTarget> targets = runtime::parse_plan_file(file, "plan");
  for (runtime::SavedTarget& target : targets) {
    for (runtime::Binary::Image& image : target.builds.at(0).images) image.bytes.assign(16, 'x');
  }
  return runtime::plan_file(targets);
}

/// Every byte and length is tried, but under sanitizers, where each takes long, one of thirteen.
std::size_t stride() { return sanitized() ? 13 : 1; }

/// Nothing but these comes of bytes that a checksum does not vouch for.
bool named(const std::string& said) {
  for (const char* code : {"no error", "file-format: ", "incompatible-version: "}) {
    if (said.starts_with(code)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a file that is longer than what is read is refused by its size", "[saved]") {
  const Folder folder;
  std::ofstream(folder / "file") << "12345";
  CHECK(runtime::read_whole(folder / "file", 5) == "12345");
  CHECK_THROWS_WITH(runtime::read_whole(folder / "file", 4),
                    Catch::Contains("has 5 bytes, more than the 4 that are read"));
}

TEST_CASE("damaged plan: every byte of a saved plan flipped is seen", "[deploy][emulated]") {
  const std::string file = saved_plan();
  REQUIRE(said_of(file) == "no error");
  for (std::size_t at = 0; at < file.size(); at += stride()) {
    std::string flipped = file;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    const std::string said = said_of(flipped);
    if (said.starts_with("file-format: ") || said.starts_with("incompatible-version: ")) continue;
    INFO("byte " << at << ": " << said);
    FAIL("a flipped byte was not seen");
  }
}

TEST_CASE("damaged plan: every length but its own is seen", "[deploy][emulated]") {
  const std::string file = saved_plan();
  for (std::size_t length = 0; length < file.size(); length += stride()) {
    const std::string said = said_of(std::string_view(file).substr(0, length));
    if (said.starts_with("file-format: ")) continue;
    INFO("length " << length << ": " << said);
    FAIL("a shortened file was not seen");
  }
  CHECK(said_of(file + 'x').starts_with("file-format: plan is damaged: it has "));
}

TEST_CASE("damaged plan: what has a right checksum is checked too", "[deploy][emulated]") {
  const std::string file = without_images(saved_plan());
  const std::string content = file.substr(runtime::container_header_bytes);
  const auto sealed = [](const std::string& with) {
    return runtime::seal("fuseplan", runtime::plan_format, with);
  };
  REQUIRE(sealed(content) == file);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < content.size(); at += stride()) {
    for (const int bit : {0, 3, 6, 7}) {
      std::string flipped = content;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const std::string said = said_of(sealed(flipped));
      INFO("byte " << at << ", bit " << bit << ": " << said);
      if (!named(said)) FAIL("not a named error");
      refused += said != "no error";
    }
  }
  CHECK(refused > content.size() / (8 * stride()));  // the rest is text for people
  for (std::size_t length = 0; length < content.size(); length += stride()) {
    const std::string said = said_of(sealed(content.substr(0, length)));
    INFO("length " << length << ": " << said);
    if (!said.starts_with("file-format: plan is damaged")) FAIL("a shortened plan was not refused");
  }
}

TEST_CASE("damaged plan: several bytes drawn, under a right checksum", "[deploy][emulated]") {
  const std::string content = without_images(saved_plan()).substr(runtime::container_header_bytes);
  const std::uint32_t seed = 20261;
  std::mt19937 random(seed);
  for (int i = 0; i < fewer(4000, 10); ++i) {
    std::string drawn = content;
    for (int k = 0; k < 1 + i % 6; ++k) drawn[random() % drawn.size()] = static_cast<char>(random());
    const std::string said = said_of(runtime::seal("fuseplan", runtime::plan_format, drawn));
    INFO("seed " << seed << ", draw " << i << ": " << said);
    if (!named(said)) FAIL("not a named error");
  }
}

TEST_CASE("damaged plan: files of other kinds", "[deploy][emulated]") {
  const Folder folder;
  const Device device = Device::emulated({.profile = "tiny3"});
  const auto load = [&](const std::string& bytes) {
    write_contents(folder / "plan", bytes);
    return error_of([&] { Executable::load(folder / "plan", device); });
  };
  CHECK(load("") == "file-format: " + (folder / "plan") + " is no fuseplan of fuse");
  CHECK(load("\x7f"
             "ELF and more of it")
            .find("is no fuseplan of fuse") != std::string::npos);
  const std::string other = load(runtime::seal("fuseplan", 99, "anything"));
  CHECK(other.starts_with("incompatible-version: "));
  CHECK(other.find("has format 99, this version of fuse reads " + std::to_string(runtime::plan_format)) !=
        std::string::npos);
  CHECK(load(runtime::seal("fuseplan", runtime::plan_format, "")).starts_with("file-format: "));
  CHECK(error_of([&] { Executable::load(folder.path(), device); }).starts_with("io: "));
  CHECK(error_of([&] { Executable::load("/dev/zero", device); }).starts_with("io: "));
}

}  // namespace fuse::test
