// SPDX-License-Identifier: Apache-2.0
#include "os/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>

#include "os/elf_file.hpp"

namespace fuse {
namespace {

// The loader's text; it repeats the name, which the report already has.
std::string loader_error(const std::string& candidate) {
  const char* error = ::dlerror();
  std::string text = error ? error : "unknown error";
  if (text.starts_with(candidate + ": ")) text.erase(0, candidate.size() + 2);
  return text;
}

// What glibc's loader says where no file of the name exists; all else is about a file that does.
bool is_absence(const std::string& why) {
  return why == "cannot open shared object file: No such file or directory";
}

// The loader's own directories: LD_LIBRARY_PATH, then the system's.
std::vector<std::string> loader_directories() {
  std::vector<std::string> directories;
  void* self = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (!self || ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return directories;
  std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* info = reinterpret_cast<Dl_serinfo*>(memory.data());
  if (::dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0 || ::dlinfo(self, RTLD_DI_SERINFO, info) != 0) {
    return directories;
  }
  for (unsigned i = 0; i < info->dls_cnt; ++i) directories.emplace_back(info->dls_serpath[i].dls_name);
  return directories;
}

// The loader maps a file that ends too early and dies of SIGBUS in it. So the file that it would take is
// looked at first. A bare name is looked for where the loader looks, and in the toolkit, which its cache may
// list.
std::string cut_short(const std::string& candidate, bool toolkit) {
  if (candidate.find('/') != std::string::npos) return elf_truncation(candidate);
  std::vector<std::string> directories = loader_directories();
  if (toolkit) {
    for (const std::string& directory : toolkit_library_directories()) directories.push_back(directory);
  }
  for (const std::string& directory : directories) {
    const std::string file = directory + '/' + candidate;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    const std::string cut = elf_truncation(file);
    return cut.empty() ? cut : fmt::format("{}: {}", file, cut);
  }
  return {};
}

}  // namespace

std::string to_string(LibraryVersion version) {
  return version ? fmt::format("{}.{}", version.major, version.minor) : "unknown";
}

std::vector<std::string> toolkit_library_directories() {
  std::vector<std::string> directories;
  for (const std::string& root :
       {value_of(Variable::cuda_home), value_of(Variable::cuda_path), std::string("/usr/local/cuda")}) {
    if (root.empty()) continue;
    for (const char* sub : {"/lib64", "/lib", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib"}) {
      directories.push_back(root + sub);
    }
  }
  return directories;
}

SharedLibrary SharedLibrary::open(const LibrarySpec& spec, const std::string& path) {
  SharedLibrary library;
  library.what_ = spec.what;
  library.hint_ = spec.hint;

  std::vector<std::string> candidates;
  const std::string named = !path.empty() || spec.variable == Variable::none ? path : value_of(spec.variable);
  if (!named.empty()) {
    candidates.push_back(named);  // asked for by name: another one would be a silent substitute
  } else {
    candidates = spec.sonames;
    if (spec.toolkit) {
      for (const std::string& directory : toolkit_library_directories()) {
        for (const std::string& soname : spec.sonames) candidates.push_back(directory + '/' + soname);
      }
    }
  }

  for (const std::string& candidate : candidates) {
    const auto refuse = [&](ErrorCode code, const std::string& why) {
      library.tried_.push_back(candidate + ": " + why);
      // The most telling failure: a version that does not fit, before damage, before absence.
      library.failure_ = std::max(library.failure_, code);
    };
    if (const std::string cut = cut_short(candidate, spec.toolkit); !cut.empty()) {
      refuse(ErrorCode::broken_install, cut);
      continue;
    }
    void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const std::string why = loader_error(candidate);
      refuse(is_absence(why) ? ErrorCode::missing_library : ErrorCode::broken_install, why);
      continue;
    }
    const char* absent = nullptr;
    for (const std::string& name : spec.needed) {
      if (!::dlsym(handle, name.c_str())) absent = name.c_str();
    }
    if (absent) {
      refuse(ErrorCode::broken_install, fmt::format("opened, but it has no symbol {}", absent));
      continue;
    }
    const LibraryVersion version = spec.version ? spec.version(handle) : LibraryVersion{};
    if (version && (version.major < spec.oldest || version.major > spec.newest)) {
      refuse(ErrorCode::incompatible_version,
             fmt::format("opened, but its version is {}; fuse takes {} to {}", to_string(version),
                         spec.oldest, spec.newest));
      continue;
    }
    library.handle_ = handle;
    library.path_ = candidate;
    library.version_ = version;
    library.tried_.push_back(fmt::format("{}: opened", candidate));
    break;
  }
  return library;
}

std::string SharedLibrary::file() const {
  ::link_map* map = nullptr;
  if (!handle_ || ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(map->l_name, failed);
  return failed ? map->l_name : real.string();
}

std::string SharedLibrary::report() const {
  std::string text = what_ + ":\n";
  for (const std::string& line : tried_) text += "  " + line + '\n';
  return text;
}

void SharedLibrary::require() const {
  if (handle_) return;
  const char* state = failure_ == ErrorCode::incompatible_version ? "is of a version that fuse does not take"
                      : failure_ == ErrorCode::broken_install     ? "is damaged or incomplete"
                                                                  : "was not found";
  std::string message = fmt::format("{} {}; looked for", what_, state);
  for (const std::string& line : tried_) message += "\n  " + line;
  throw Error({.kind = ErrorKind::runtime, .code = failure_, .message = std::move(message), .hint = hint_});
}

void* SharedLibrary::symbol(const char* name) const noexcept {
  return handle_ ? ::dlsym(handle_, name) : nullptr;
}

void* SharedLibrary::required_symbol(const char* name) const {
  require();
  if (void* address = symbol(name)) return address;
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::missing_library,
               .message = fmt::format("{} ({}) has no function {}: it is too old", what_, path_, name),
               .hint = hint_});
}

}  // namespace fuse
