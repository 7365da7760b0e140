// SPDX-License-Identifier: Apache-2.0
#include "os/environment.hpp"

#include <cstdlib>

namespace fuse {

std::string_view name_of(Variable variable) {
  switch (variable) {
    case Variable::none:
      return {};
    case Variable::cxx:
      return "FUSE_CXX";
    case Variable::libcuda:
      return "FUSE_LIBCUDA";
    case Variable::libnvrtc:
      return "FUSE_LIBNVRTC";
    case Variable::libcublaslt:
      return "FUSE_LIBCUBLASLT";
    case Variable::libopenblas:
      return "FUSE_LIBOPENBLAS";
    case Variable::cuda_home:
      return "CUDA_HOME";
    case Variable::cuda_path:
      return "CUDA_PATH";
    case Variable::path:
      return "PATH";
    case Variable::tmpdir:
      return "TMPDIR";
    case Variable::fault:
      return "FUSE_FAULT";
    case Variable::cache:
      return "FUSE_CACHE";
    case Variable::cache_dir:
      return "FUSE_CACHE_DIR";
    case Variable::xdg_cache_home:
      return "XDG_CACHE_HOME";
    case Variable::home:
      return "HOME";
    case Variable::keep:
      return "FUSE_KEEP";
    case Variable::sync:
      return "FUSE_SYNC";
    case Variable::repro:
      return "FUSE_REPRO";
    case Variable::repro_data:
      return "FUSE_REPRO_DATA";
    case Variable::contract:
      return "FUSE_CONTRACT";
  }
  return {};
}

std::vector<Variable> all_variables() {
  std::vector<Variable> variables;
  for (int i = 1; !name_of(static_cast<Variable>(i)).empty(); ++i) {
    variables.push_back(static_cast<Variable>(i));
  }
  return variables;
}

std::string value_of(Variable variable) {
  const char* value =
      variable == Variable::none ? nullptr : std::getenv(std::string(name_of(variable)).c_str());
  return value ? value : "";
}

}  // namespace fuse
