# Writes OUTPUT, which defines fuse::source_id: a hash over the files of ROOT/src and ROOT/include. Run as a script.
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE files LIST_DIRECTORIES false ${ROOT}/src/*.cpp ${ROOT}/src/*.hpp ${ROOT}/include/fuse/*)
list(SORT files)
set(all "")
foreach(file IN LISTS files)
  file(SHA256 ${file} hash)
  string(APPEND all "${hash}\n")
endforeach()
string(SHA256 id "${all}")
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#include \"compile/cache/source_id.hpp\"
namespace fuse {
std::string_view source_id() { return \"@id@\"; }
}  // namespace fuse
")
