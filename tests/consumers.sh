#!/usr/bin/env bash
# Installs fuse and builds applications against it: bash tests/consumers.sh STATIC_BUILD (a build folder, built). The
# shared library is the one that an application has built as a part of itself. One line a check, then 'N passed, N failed'.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

if (($# != 1)) || [[ ! -e $1/lib/libfuse-compiler.a ]]; then
  echo 'usage: consumers.sh STATIC_BUILD (with lib/libfuse-compiler.a)' >&2
  exit 2
fi
static_build=$(cd "$1" && pwd)
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit 2
here=$PWD
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fuse-consumers.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
shared_build=$scratch/application
cxx=(g++ -std=c++20 -Wall -Wextra -Werror)
cc=(gcc -std=c99 -Wall -Wextra -Wpedantic -Werror)

export FUSE_CACHE=0  # nothing of this is the user's

passed=0 failed=0
report() {  # 0|1 WHAT [WHY]
  if (($1 == 0)); then
    passed=$((passed + 1))
    printf 'ok      %s\n' "$2"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s%s\n' "$2" "${3:+: $3}"
    sed 's/^/          /' "$scratch/log"
  fi
}

# check WHAT COMMAND...: it succeeds.
check() {
  local what=$1 status=0
  shift
  "$@" >"$scratch/log" 2>&1 </dev/null || status=$?
  report $((status != 0)) "$what" "status $status"
}

# refused PATTERN WHAT COMMAND...: it fails, and says why.
refused() {
  local pattern=$1 what=$2
  shift 2
  if "$@" >"$scratch/log" 2>&1 </dev/null; then
    report 1 "$what" 'it succeeded'
  else
    grep -qE -- "$pattern" "$scratch/log"
    report $? "$what" "no line matches '$pattern'"
  fi
}

# none WHAT COMMAND...: it prints nothing.
none() {
  local what=$1
  shift
  "$@" >"$scratch/log" 2>&1 </dev/null
  [[ ! -s $scratch/log ]]
  report $? "$what"
}

# Each kind is installed to a place of its own and moved: nothing of the first place may be asked for again.
install_all() {
  local kind build
  for kind in static shared; do
    build=${kind}_build
    check "install, $kind" cmake --install "${!build}" --prefix "$scratch/first/$kind"
    check "install into one prefix, $kind" cmake --install "${!build}" --prefix "$scratch/both"
  done
  check 'install, the runtime component' \
    cmake --install "$shared_build" --prefix "$scratch/runtime" --component runtime
  mv "$scratch/first" "$scratch/moved"
  libdir=$(dirname "$(find "$scratch/moved/static" -name libfuse-compiler.a -printf '%P\n')")
  static=$scratch/moved/static shared=$scratch/moved/shared both=$scratch/both
}

check_names() {
  none 'no file has a name of libfuse' \
    find "$both" -name 'libfuse.*' -o -name 'fuse.pc' -o -path '*/include/fuse' -o \( -name '*.h' -not -name c_api.h \)
  none 'no file knows the source tree or the first prefix' \
    grep -rlF -e "$here" -e "$scratch/first" -e "$static_build" -e "$shared_build" "$static" "$shared"
  none 'the runtime component has no headers, no .so link, no CMake files' \
    find "$scratch/runtime" -name '*.hpp' -o -name '*.h' -o -name '*.so' -o -name '*.cmake' -o -name '*.pc'
  none 'no flag of this machine, and no fast math' \
    grep -oE -- '-m(arch|tune|cpu)=[a-z0-9]+|-ffast-math' "$static_build/build.ninja" "$shared_build/build.ninja"
}

exported() { nm -D --defined-only "$shared/$libdir/libfuse-compiler.so" | awk '{ print $3 }'; }
public='^(_Z(NK?R?|T[ISV]N)4fuse2v0|fuse_compiler_)'
foreign() { exported | grep -vE "$public" | c++filt; }
dynamic() { readelf -dW "$shared/$libdir/libfuse-compiler.so"; }
run_paths() { readelf -dW "$shared/$libdir/libfuse-compiler.so" "$static/bin/fusec" | grep -E 'R(UN)?PATH'; }
needed() {
  dynamic | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libfmt|libstdc\+\+|libm|libgcc_s|libc|ld-linux.*)\.so'
}
soname() { dynamic | grep -F 'SONAME' | grep -F '[libfuse-compiler.so.0.1]'; }
c_functions() { grep -oE '\bfuse_compiler_[a-z_]+\(' include/fuse/c_api.h | tr -d '(' | sort -u; }
missing_c() { comm -23 <(c_functions) <(nm -D --defined-only "$1" | awk '{ print $3 }' | sort); }
exports_api() { [[ $(exported | grep -cE '^(_ZN4fuse2v07compileE.*|_ZTIN4fuse2v05ErrorE)$') == 2 ]]; }

check_shared_library() {
  check 'the soname is libfuse-compiler.so.0.1' soname
  none 'no RPATH and no RUNPATH' run_paths
  none 'it needs libfmt and the compiler'\''s libraries only' needed
  check 'it exports compile and the type of Error' exports_api
  none 'it exports nothing but fuse::v0 and the C interface' foreign
  none 'it exports all of the C interface' missing_c "$shared/$libdir/libfuse-compiler.so"
}

check_headers() {
  local header
  while read -r header; do
    check "$header compiles alone" "${cxx[@]}" -Wpedantic -fsyntax-only -x c++ \
      -I "$static/include/fuse-compiler" -include "$header" /dev/null
  done < <(cd "$static/include/fuse-compiler" && find . \( -name '*.hpp' -o -name '*.h' \) -printf '%P\n' | sort)
  check 'fuse/c_api.h compiles as C99' "${cc[@]}" -fsyntax-only -x c -I "$static/include/fuse-compiler" \
    -include fuse/c_api.h /dev/null
}

# cmake_consumer WHAT PROJECT ARGUMENT...: configure, build (in $build, else in a folder of its own), run.
cmake_consumer() {
  local what=$1 project=$2 build=${build:-}
  shift 2
  [[ -n $build ]] || build=$(mktemp -d "$scratch/build.XXXXXX")
  check "$what: configure" cmake -G Ninja -S "tests/consumers/$project" -B "$build" \
    -DCMAKE_BUILD_TYPE=Release "$@"
  check "$what: build" cmake --build "$build"
  check "$what: run" "$build/consumer"
}

check_find_package() {
  cmake_consumer 'find_package, static' find_package "-DCMAKE_PREFIX_PATH=$static"
  cmake_consumer 'find_package, shared, and the library that only runs' find_package "-DCMAKE_PREFIX_PATH=$shared" \
    -DWITH_RUNTIME=ON
  cmake_consumer 'find_package, static of both' find_package "-DCMAKE_PREFIX_PATH=$both" -DKIND=static
  refused 'library of this kind: shared' 'find_package of a kind that is not there' \
    cmake -G Ninja -S tests/consumers/find_package -B "$scratch/absent" "-DCMAKE_PREFIX_PATH=$static" -DKIND=shared
}

# As a shared library, not optimised since nothing is measured.
check_add_subdirectory() {
  build=$shared_build cmake_consumer 'add_subdirectory, shared' add_subdirectory "-DFUSE_SOURCE_DIR=$here" \
    -DBUILD_SHARED_LIBS=ON -DFUSE_COMPILER_WERROR=ON -DFUSE_COMPILER_INSTALL=ON -DFUSE_COMPILER_RUNTIME=ON \
    -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_UNITY_BUILD=ON
  check 'add_subdirectory: static unless asked' cmake -G Ninja -S tests/consumers/add_subdirectory -B "$scratch/default" \
    "-DFUSE_SOURCE_DIR=$here"
  check 'add_subdirectory: the library, and nothing else of ours' only_the_library
}
only_the_library() {
  local targets
  targets=$(ninja -C "$scratch/default" -t targets all) &&
    grep -q 'libfuse-compiler[.]a: ' <<<"$targets" && ! grep -qE '(fusec|fuse_tests|fuse_bench)(: |_)' <<<"$targets"
}

# The library that only runs, beside a plan that the other one saved, where no compiler can be found.
# OPENBLAS_CORETYPE says which kernels OpenBLAS runs, and so the last bits: it is that of the other one.
bare() {
  env -i PATH=/nonexistent FUSE_CXX=/nonexistent FUSE_LIBNVRTC=/nonexistent TMPDIR="$scratch" \
    ${OPENBLAS_CORETYPE:+OPENBLAS_CORETYPE="$OPENBLAS_CORETYPE"} "$@"
}
runs_alike() { [[ $("$shared_build/save_plan" "$1" "$scratch/plan") == "$(bare "$shared_build/run_plan" "$scratch/plan")" ]]; }
runtime_library() { find "$shared/$libdir/" -name 'libfuse-compiler-runtime.so.*.*.*'; }
starts_programs() { nm -D --undefined-only "$(runtime_library)" | grep -E ' (posix_spawn|fork|vfork|exec[a-z]*|system|popen)'; }
knows_compilers() { grep -aoE 'libnvrtc|FUSE_KERNEL|--std=c' "$(runtime_library)"; }
foreign_of_runtime() { nm -D --defined-only "$(runtime_library)" | awk '{ print $3 }' | grep -vE "$public" | c++filt; }
is_small() { (($(strip -o /dev/stdout "$(runtime_library)" | wc -c) < 3000000)); }

# The C program, linked with nothing but the library that only runs, and a plan of the other one.
sums_are_right() { bare "LD_LIBRARY_PATH=$shared/$libdir" "$scratch/c_program" "$scratch/c.plan" B=3 | grep -F 'y f32[3, 4096] sum 3.0000'; }
check_c_program() {
  check 'the C program: build' "${cc[@]}" -I "$shared/include/fuse-compiler" examples/07_c_program.c \
    -L "$shared/$libdir" -lfuse-compiler-runtime -o "$scratch/c_program"
  check 'the C program: a plan' "$shared_build/save_plan" examples/graphs/softmax.fuse "$scratch/c.plan"
  check 'the C program: run' sums_are_right
}

check_runtime_library() {
  local graph
  for graph in softmax layernorm transformer_block; do
    check "a saved $graph runs where there is no compiler, with the same bits" runs_alike "examples/graphs/$graph.fuse"
  done
  refused 'is no fuseplan of fuse' 'a file that is no plan' bare "$shared_build/run_plan" examples/graphs/softmax.fuse
  none 'the runtime library starts no programs' starts_programs
  none 'the runtime library has no text for compilers' knows_compilers
  none 'the runtime library exports nothing but fuse::v0 and the C interface' foreign_of_runtime
  none 'the runtime library exports all of the C interface' missing_c "$(runtime_library)"
  check_c_program
  check 'the runtime library is smaller than 3 MB' is_small
}

pkg() { PKG_CONFIG_PATH=$1/$libdir/pkgconfig pkg-config "${@:2}"; }

check_pkg_config() {
  local -a flags
  local sources=(tests/consumers/main.cpp tests/consumers/rows.cpp)
  read -ra flags < <(pkg "$static" --static --cflags --libs fuse-compiler)
  check 'pkg-config, static: build' "${cxx[@]}" "${sources[@]}" "${flags[@]}" -o "$scratch/pkg-static"
  check 'pkg-config, static: run' "$scratch/pkg-static"
  read -ra flags < <(pkg "$shared" --cflags --libs fuse-compiler)
  check 'pkg-config, shared: build' "${cxx[@]}" "${sources[@]}" "${flags[@]}" -o "$scratch/pkg-shared"
  check 'pkg-config, shared: run' env "LD_LIBRARY_PATH=$shared/$libdir" "$scratch/pkg-shared"
}

# libfuse's example: Debian has it beside the documentation, which some images leave out; then from the package.
libfuse_example() {  # PACKAGE
  local file=/usr/share/doc/$1/examples/hello.c
  if [[ ! -e $file ]]; then
    mkdir -p "$scratch/$1"
    (cd "$scratch/$1" && apt-get download "$1" && dpkg-deb -x ./*.deb .) >"$scratch/log" 2>&1
    file=$scratch/$1$file
  fi
  printf '%s\n' "$file"
}

example_runs() { [[ $("$scratch/hello" --help 2>&1) == *usage:* ]]; }  # version 2 ends it with status 1

check_beside_libfuse() {  # VERSION
  local version=$1 name=fuse package=libfuse-dev what="beside libfuse $1" define=()
  if ((version == 3)); then name=fuse3 package=libfuse3-dev define=(-DLIBFUSE_3); fi
  if ! pkg-config --exists "$name"; then
    : >"$scratch/log"
    report 1 "$what" "$package is missing; apt-get install -y --no-install-recommends $package"
    return
  fi
  local folder=tests/consumers/beside_libfuse example
  local -a flags theirs
  # Both include folders and both libraries in one line, ours first.
  read -ra flags < <(pkg "$shared" --cflags --libs fuse-compiler "$name")
  read -ra theirs < <(pkg-config --cflags --libs "$name")
  check "$what: build of one program" "${cxx[@]}" "${define[@]}" "$folder/main.cpp" "$folder/filesystem.cpp" \
    tests/consumers/rows.cpp "${flags[@]}" -o "$scratch/beside"
  check "$what: run" env "LD_LIBRARY_PATH=$shared/$libdir" "$scratch/beside"
  check "$what: both in one file, its struct renamed" "${cxx[@]}" "${define[@]}" "$folder/one_file.cpp" \
    "${flags[@]}" -o "$scratch/one_file"
  check "$what: run of that" env "LD_LIBRARY_PATH=$shared/$libdir" "$scratch/one_file"
  check "$what: its low-level header in the same file" "${cxx[@]}" "${define[@]}" "$folder/low_level.cpp" \
    "${flags[@]}" -fsyntax-only
  refused "error: #error .*libfuse's <fuse.h> came before" "$what: its header first is refused" \
    "${cxx[@]}" "${define[@]}" "$folder/wrong_order.cpp" "${flags[@]}" -fsyntax-only
  example=$(libfuse_example "$package")
  check "$what: its own example" gcc -Wall -I "$both/include" -I "$both/include/fuse-compiler" \
    -L "$both/$libdir" "$example" "${theirs[@]}" -o "$scratch/hello"
  check "$what: run of its example" example_runs
}

check_add_subdirectory
install_all
check_names
check_shared_library
check_runtime_library
check_headers
check_find_package
check_pkg_config
check_beside_libfuse 2
check_beside_libfuse 3
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0 && passed > 0))
