// SPDX-License-Identifier: Apache-2.0
#include "runtime/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace fuse::runtime {
namespace {

// The loader's text; it repeats the name, which the report already has.
std::string loader_error(const std::string& candidate) {
  const char* error = ::dlerror();
  std::string text = error ? error : "unknown error";
  if (text.starts_with(candidate + ": ")) text.erase(0, candidate.size() + 2);
  return text;
}

}  // namespace

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
    void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      library.tried_.push_back(fmt::format("{}: {}", candidate, loader_error(candidate)));
      continue;
    }
    const char* absent = nullptr;
    for (const std::string& name : spec.needed) {
      if (!::dlsym(handle, name.c_str())) absent = name.c_str();
    }
    if (absent) {
      library.tried_.push_back(fmt::format("{}: opened, but it has no symbol {}", candidate, absent));
      continue;
    }
    library.handle_ = handle;
    library.path_ = candidate;
    library.tried_.push_back(fmt::format("{}: opened", candidate));
    break;
  }
  return library;
}

std::string SharedLibrary::report() const {
  std::string text = what_ + ":\n";
  for (const std::string& line : tried_) text += "  " + line + '\n';
  return text;
}

void SharedLibrary::require() const {
  if (handle_) return;
  std::string message = fmt::format("{} was not found; looked for", what_);
  for (const std::string& line : tried_) message += "\n  " + line;
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::missing_library,
               .message = std::move(message),
               .hint = hint_});
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

}  // namespace fuse::runtime
