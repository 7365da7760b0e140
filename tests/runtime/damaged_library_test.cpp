// Libraries that are there and damaged: a value with a report, never a crash of the loader.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "os/elf_file.hpp"
#include "os/shared_library.hpp"
#include "os/temporary_folder.hpp"
#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

namespace fs = std::filesystem;
using fuse::SharedLibrary;

// The C library: a shared library that every process has. Sanitizers put themselves before most of its
// functions, but not before this one.
std::string some_library() {
  Dl_info info{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&::gnu_get_libc_version), &info) != 0);
  return info.dli_fname;
}

TEST_CASE("a library cut short anywhere is refused, not mapped", "[runtime]") {
  const TemporaryFolder folder;
  const std::string whole = some_library(), copy = folder.path() + "/libcut.so";
  CHECK(elf_truncation(whole).empty());
  const auto size = fs::file_size(whole);
  for (const std::uintmax_t keep :
       {std::uintmax_t{0}, std::uintmax_t{3}, std::uintmax_t{63}, std::uintmax_t{64}, std::uintmax_t{700},
        std::uintmax_t{5000}, size / 2, size * 9 / 10}) {
    fs::copy_file(whole, copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, keep);
    const SharedLibrary library = SharedLibrary::open({.what = "a thing", .hint = "install it"}, copy);
    INFO(keep << " of " << size << " bytes");
    CHECK_FALSE(library);
    const std::string error = error_of([&] { library.require(); });
    INFO(error);
    CHECK(
        error.starts_with("broken-install: a thing is damaged or incomplete; looked for\n  " + copy + ": "));
    CHECK(error.ends_with("\n  hint: install it"));
    if (keep >= 64) {
      CHECK(error.find(fmt::format("cut short: {} bytes, its segments need", keep)) != std::string::npos);
    }
  }
}

TEST_CASE("a file that is no library is damage, no file is absence", "[runtime]") {
  const TemporaryFolder folder;
  folder.write("libtext.so", "this is no shared library, but it is long enough to have a header of its own");
  const auto error = [](const std::string& path) {
    return error_of([&] { SharedLibrary::open({.what = "a thing"}, path).require(); });
  };
  CHECK(error(folder.path() + "/libtext.so").starts_with("broken-install: "));
  CHECK(error(folder.path() + "/libnone.so").starts_with("missing-library: "));
  CHECK(error(folder.path()).starts_with("broken-install: "));
}

TEST_CASE("the version decides before damage, damage before absence", "[runtime]") {
  const TemporaryFolder folder;
  folder.write("libtext.so", "no library");
  const std::string whole = some_library(), text = folder.path() + "/libtext.so";
  const auto open = [&](std::vector<std::string> sonames, int newest) {
    return SharedLibrary::open({.what = "a thing",
                                .sonames = std::move(sonames),
                                .version =
                                    [](void*) {
                                      return LibraryVersion{7, 2};
                                    },
                                .oldest = 5,
                                .newest = newest});
  };
  CHECK(open({text, whole}, 7));
  CHECK(to_string(open({whole}, 7).version()) == "7.2");
  CHECK(fs::exists(open({whole}, 9).file()));
  const std::string error = error_of([&] { open({whole, text, "libnone.so.1"}, 6).require(); });
  CHECK(error.starts_with("incompatible-version: a thing is of a version that fuse does not take"));
  CHECK(error.find(whole + ": opened, but its version is 7.2; fuse takes 5 to 6") != std::string::npos);
  CHECK(error_of([&] { open({"libnone.so.1", text}, 6).require(); }).starts_with("broken-install: "));
}

}  // namespace
}  // namespace fuse::test
