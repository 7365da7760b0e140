// Emitted text as C++ of the host: each kernel with an entry that the emulated device calls.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>
#include <string_view>
#include <unordered_map>

#include "codegen_cuda/primitives/primitives.hpp"
#include "codegen_cuda/text/kernel_text.hpp"
#include "compile/toolchains/host_compiler.hpp"
#include "compile/toolchains/kept_text.hpp"
#include "os/environment.hpp"
#include "os/parallel.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime::emulated {
namespace {

// Kernels that are worth a compiler of their own: one takes about 33 ms for the prelude and 14 ms for each
// kernel.
constexpr std::size_t kernels_a_text = 8;

[[noreturn]] void internal(std::string message) {
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = std::move(message)});
}

// Where a kernel's text begins: the line of its FUSE_KERNEL, its offset in the body, its name.
struct Site {
  std::string name;
  std::size_t offset;
  int line;
};

// Where the word begins that follows the next ")".
std::size_t behind_parenthesis(std::string_view text, std::size_t from) {
  const std::size_t close = std::min(text.find(')', from), text.size() - 1);
  return std::min(text.find_first_not_of(' ', close + 1), text.size());
}

std::vector<Site> find_kernels(const codegen::Source& source) {
  std::vector<Site> sites;
  const std::string& body = source.body;
  int line = source.body_line();
  for (std::size_t at = 0; at < body.size(); ++line) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    const std::string_view text(body.data() + at, end - at);
    if (text.starts_with("FUSE_KERNEL(")) {
      std::size_t from = behind_parenthesis(text, 0);
      if (text.substr(from).starts_with("FUSE_CLUSTER(")) from = behind_parenthesis(text, from);
      sites.push_back({std::string(text.substr(from, text.find('(', from) - from)), at, line});
    }
    at = end + 1;
  }
  return sites;
}

// The extern "C" function that builds a kernel's arguments and runs one thread of it, or, if its threads do
// not communicate, all threads of blocks first..last in a plain loop.
std::string entry_text(const codegen::KernelInfo& kernel, std::size_t number, bool checked) {
  std::string arguments;
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    const codegen::KernelParam& p = kernel.params[i];
    const std::string_view type = codegen::type_in_text(p.dtype);
    if (i) arguments += ", ";
    if (p.kind == codegen::KernelParam::Kind::extent) {
      arguments += fmt::format("static_cast<{}>(c->arguments[{}])", type, i);
    } else if (checked) {
      arguments += fmt::format("global<{0}>{{reinterpret_cast<{0}*>(c->arguments[{1}]), {1}}}", type, i);
    } else {
      arguments += fmt::format("reinterpret_cast<{}*>(c->arguments[{}])", type, i);
    }
  }
  std::string text = fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) void fuse_entry_{}(const fuse_call* c) {{\n"
      "fuse_kernels d;\nd.call_ = c;\nd.blockDim = {{{}, 1, 1}};\n"
      "d.gridDim = {{c->grid[0], c->grid[1], c->grid[2]}};\n",
      number, kernel.block_threads);
  if (kernel.communicates) {
    text += fmt::format(
        "d.threadIdx = {{c->thread, 0, 0}};\nd.blockIdx = {{c->block[0], c->block[1], c->block[2]}};\n"
        "d.{}({});\n}}\n",
        kernel.name, arguments);
  } else {
    text += fmt::format(
        "for (unsigned long long b = c->first; b < c->last; ++b) {{\n"
        "const unsigned long long yz = b / c->grid[0];\n"
        "d.blockIdx = {{unsigned(b % c->grid[0]), unsigned(yz % c->grid[1]), unsigned(yz / c->grid[1])}};\n"
        "for (unsigned t = 0; t < {}; ++t) {{\n{}d.threadIdx = {{t, 0, 0}};\nd.{}({});\n}}\n}}\n}}\n",
        kernel.block_threads, checked ? "c->begin_thread(c->runner, b, t);\n" : "", kernel.name, arguments);
  }
  return text;
}

// `#line` makes a line of the host file count as in source.text(), which is what users see.
std::string line_mark(int line, const std::string& name) {
  std::string file;
  for (char c : name) {
    if (c != '"' && c != '\\' && c != '\n') file += c;
  }
  return fmt::format("#line {} \"{}.cu\"\n", line, file);
}

// Its text's first line and the one after its last.
void note_lines(const std::vector<Site>& sites, std::size_t site, int end_line, codegen::KernelInfo& kernel) {
  kernel.first_line = sites[site].line;
  kernel.last_line = site + 1 < sites.size() ? sites[site + 1].line : end_line;
}

class EmulatedToolchain final : public Toolchain {
 public:
  EmulatedToolchain(int optimization, bool checked) : compiler_(optimization), checked_(checked) {}

  std::string key() const override {
    std::string key = compiler_.build_key();
    if (checked_) key += " checked";
    return keeps_text() ? key + " kept in " + value_of(Variable::keep) : key;
  }
  bool binds_lines() const override { return checked_ || keeps_text(); }
  std::string report() const override { return compiler_.report(); }

  Binary build(const codegen::Source& given, int threads) const override {
    const codegen::Source source = with_kept_text(given);
    Binary binary{.name = given.name, .maker = compiler_.path(), .kernels = source.kernels, .images = {}};
    find_lines(source, binary.kernels);
    const std::vector<codegen::SourceChunk> chunks = codegen::chunks(
        source,
        std::min(thread_count(threads), std::max<std::size_t>(1, source.kernels.size() / kernels_a_text)));
    const std::string head =
        codegen::host_prelude(checked_) + "namespace {\nstruct fuse_kernels : fuse_device {\n";
    std::vector<std::string> texts;
    for (const codegen::SourceChunk& chunk : chunks) {
      std::string text = head + line_mark(chunk.line, source.name);
      text.append(source.body, chunk.begin, chunk.end - chunk.begin);
      text += "\n#line 1 \"entry\"\n};\n}  // namespace\n";
      for (std::size_t i = chunk.first; i < chunk.last; ++i) {
        text += entry_text(source.kernels[i], i, checked_);
      }
      texts.push_back(std::move(text));
    }
    std::vector<std::vector<char>> libraries = compiler_.build(texts, keeps_text());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      binary.images.push_back({std::move(libraries[i]),
                               static_cast<std::uint32_t>(chunks[i].last - chunks[i].first),
                               static_cast<std::uint32_t>(chunks[i].first)});
    }
    return binary;
  }

 private:
  static void find_lines(const codegen::Source& source, std::vector<codegen::KernelInfo>& kernels) {
    const std::vector<Site> sites = find_kernels(source);
    std::unordered_map<std::string_view, std::size_t> site_by_name;
    for (std::size_t i = 0; i < sites.size(); ++i) site_by_name.emplace(sites[i].name, i);
    const int end_line =
        source.body_line() + static_cast<int>(std::count(source.body.begin(), source.body.end(), '\n'));
    for (codegen::KernelInfo& kernel : kernels) {
      if (kernel.block_threads < 1 || kernel.block_threads > 1024) {
        internal(fmt::format("kernel {} has {} threads a block", kernel.name, kernel.block_threads));
      }
      const auto at = site_by_name.find(kernel.name);
      if (at == site_by_name.end()) {
        internal(fmt::format("{}.cu has no kernel {}", source.name, kernel.name));
      }
      note_lines(sites, at->second, end_line, kernel);
    }
  }

  const HostCompiler compiler_;
  const bool checked_;
};

}  // namespace
}  // namespace fuse::runtime::emulated

namespace fuse::runtime {

std::shared_ptr<const Toolchain> emulated_toolchain(int optimization, bool checked) {
  return std::make_shared<emulated::EmulatedToolchain>(optimization, checked);
}

}  // namespace fuse::runtime
