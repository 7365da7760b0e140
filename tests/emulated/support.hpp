// Helpers of the emulated device's tests: a Source from the text of its kernels alone, and a device with
// typed buffers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "codegen_cuda/primitives/primitives.hpp"
#include "runtime/emulated/emulated.hpp"
#include "support/catch.hpp"

namespace fuse::test {

inline DType type_of(std::string_view text) {
#define FUSE_DTYPE(name, spelling, bytes, kind, cuda) \
  if (text == cuda) return DType::name;
#include <fuse/dtypes.def>
  return DType::f32;
}

inline codegen::KernelParam parse_param(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  codegen::KernelParam param;
  const std::size_t space = text.rfind(' ');
  param.name = text.substr(space + 1);
  std::string_view type = text.substr(0, space);
  if (!type.starts_with("global<")) {
    param.kind = codegen::KernelParam::Kind::extent;
    param.dtype = type_of(type);
    return param;
  }
  type = type.substr(7, type.rfind('>') - 7);
  param.written = !type.starts_with("const ");
  param.dtype = type_of(param.written ? type : type.substr(6));
  return param;
}

/// Reads the kernels' signatures, shared arrays and barriers from the text. A comment `// %7 sum @scope`
/// makes an OpLine of its line. Line 1 is the first one after the prelude.
inline codegen::Source make_source(const std::string& body, const std::string& name = "test") {
  codegen::Source source;
  source.name = name;
  source.body = body;
  int line = source.body_line();
  std::istringstream lines(body);
  std::size_t offset = 0;
  for (std::string text; std::getline(lines, text); ++line, offset += text.size() + 1) {
    if (text.starts_with("FUSE_KERNEL(")) {
      source.starts.push_back(offset);
      codegen::KernelInfo info;
      info.block_threads = std::atoi(text.c_str() + 12);
      std::size_t from = text.find(") ") + 2;
      if (text.compare(from, 13, "FUSE_CLUSTER(") == 0) {
        info.cluster = std::atoi(text.c_str() + from + 13);
        from = text.find(") ", from) + 2;
      }
      const std::size_t open = text.find('(', from), close = text.find(')', open);
      info.name = text.substr(from, open - from);
      std::istringstream params(text.substr(open + 1, close - open - 1));
      for (std::string p; std::getline(params, p, ',');) info.params.push_back(parse_param(p));
      source.kernels.push_back(info);
    }
    if (source.kernels.empty()) continue;
    codegen::KernelInfo& info = source.kernels.back();
    if (const auto at = text.find("FUSE_SHARED("); at != std::string::npos) {
      const std::size_t comma = text.find(',', at);
      info.shared_bytes +=
          static_cast<std::int64_t>(size_of(type_of(text.substr(at + 12, comma - at - 12)))) *
          std::atoi(text.c_str() + comma + 1);
    }
    info.cooperative |=
        text.find("grid_barrier(") != std::string::npos || text.find("group_barrier(") != std::string::npos;
    for (const char* word :
         {"block_barrier(", "grid_barrier(", "group_barrier(", "cluster_", "warp_", "shuffle_xor("}) {
      info.communicates |= text.find(word) != std::string::npos;
    }
    if (const auto at = text.find("// %"); at != std::string::npos) {
      const std::size_t scope = text.find(" @", at);
      info.lines.push_back({.line = line,
                            .op = text.substr(at + 3, scope == std::string::npos ? scope : scope - at - 3),
                            .scope = scope == std::string::npos ? "" : text.substr(scope + 2),
                            .location = "",
                            .barrier = text.find("barrier") != std::string::npos});
    }
  }
  return source;
}

class EmulatedDevice {
 public:
  explicit EmulatedDevice(const runtime::EmulatedOptions& options)
      : backend(runtime::make_emulated_backend(options)), queue(backend->create_queue()) {}
  ~EmulatedDevice() {
    for (const runtime::Argument& a : owned_) backend->free(a.address);
  }
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;

  void load(const std::string& body) { module = backend->load(make_source(body)); }

  runtime::Argument buffer(std::int64_t bytes) {
    owned_.push_back({.address = backend->allocate(bytes), .bytes = bytes});
    return owned_.back();
  }
  template <class T>
  runtime::Argument buffer(const std::vector<T>& values) {
    const runtime::Argument a = buffer(static_cast<std::int64_t>(values.size() * sizeof(T)));
    backend->upload(*queue, a.address, values.data(), a.bytes).throw_if_failed();
    return a;
  }
  Status run(const std::string& kernel, runtime::Dim3 grid, const std::vector<runtime::Argument>& arguments) {
    return backend->launch(*queue, module->function(kernel), grid, arguments.data(),
                           static_cast<int>(arguments.size()));
  }
  Status download(const runtime::Argument& a, void* to) {
    return backend->download(*queue, to, a.address, a.bytes);
  }
  template <class T>
  std::vector<T> values(const runtime::Argument& a) {
    std::vector<T> result(static_cast<std::size_t>(a.bytes) / sizeof(T));
    download(a, result.data()).throw_if_failed();
    return result;
  }

  std::unique_ptr<runtime::Backend> backend;
  std::unique_ptr<runtime::Queue> queue;
  std::unique_ptr<runtime::Module> module;

 private:
  std::vector<runtime::Argument> owned_;
};

inline runtime::Argument extent(std::int64_t value) { return {.value = value}; }

}  // namespace fuse::test
