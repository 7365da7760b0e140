# What every target of this tree shares: flags, warnings, sanitizers, where files land.
# SPDX-License-Identifier: Apache-2.0
include_guard()

set(FUSE_BIN_DIR ${PROJECT_BINARY_DIR}/bin)

set(known_sanitizers "address,undefined" "undefined,address" address undefined thread)
if(FUSE_COMPILER_SANITIZE AND NOT FUSE_COMPILER_SANITIZE IN_LIST known_sanitizers)
  message(FATAL_ERROR "FUSE_COMPILER_SANITIZE=${FUSE_COMPILER_SANITIZE}: use address,undefined or thread")
endif()

# With CMAKE_UNITY_BUILD the sources below a top folder are compiled as a few: much of a small file's time goes to what
# it includes. Top folders stay apart, so that a new file moves the bounds in its own only.
set(FUSE_COMPILER_UNITY_SIZE 14 CACHE STRING "Sources compiled as one where CMAKE_UNITY_BUILD is on, at most")
mark_as_advanced(FUSE_COMPILER_UNITY_SIZE)
function(fuse_unity_groups target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^[$]<")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    string(REGEX REPLACE "/.*" "" folder "${folder}")
    list(APPEND folders "${folder}.")
    list(APPEND sources_${folder}. ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH sources_${folder} count)
    math(EXPR groups "(${count} + ${FUSE_COMPILER_UNITY_SIZE} - 1) / ${FUSE_COMPILER_UNITY_SIZE}")
    set(index 0)
    foreach(source IN LISTS sources_${folder})
      math(EXPR group "${index} * ${groups} / ${count}")
      math(EXPR index "${index} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}${group}")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# Rounding is part of the contract: no contraction into fma, and never -ffast-math (it sets flush-to-zero
# for the whole process) nor -march=native.
function(fuse_target_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  fuse_unity_groups(${target})
  target_compile_options(${target} PRIVATE -Wall -Wextra -ffp-contract=off)
  if(FUSE_COMPILER_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(FUSE_COMPILER_SANITIZE)
    # -fno-sanitize-recover: what UBSan finds ends the program with a failure, in ctest too.
    target_compile_options(${target} PRIVATE -fsanitize=${FUSE_COMPILER_SANITIZE}
                                             -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC's flow analysis is thrown off by the inserted checks; its TSan says on every fence that it ignores it.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-tsan)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=${FUSE_COMPILER_SANITIZE})
  endif()
endfunction()

# fuse_program(NAME SOURCE...): a program in bin/, of a bundle its part of the one program. It links fuse::fuse, or
# fuse_internal where it sees internals.
function(fuse_program name)
  if(FUSE_COMPILER_BUNDLE)
    foreach(source IN LISTS ARGN)
      get_filename_component(file ${source} ABSOLUTE)
      get_property(other GLOBAL PROPERTY "FUSE_BUNDLE_PROGRAM_OF_${file}")
      if(other)
        message(FATAL_ERROR "${file} is in ${other} and in ${name}: the one program of a bundle has each source once")
      endif()
      set_property(GLOBAL PROPERTY "FUSE_BUNDLE_PROGRAM_OF_${file}" ${name})
    endforeach()
    add_library(${name} OBJECT ${ARGN})
    target_compile_definitions(${name} PRIVATE main=${name}_main)
    set_property(GLOBAL APPEND PROPERTY FUSE_BUNDLE_PROGRAMS ${name})
  else()
    add_executable(${name} ${ARGN})
  endif()
  fuse_target_defaults(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${FUSE_BIN_DIR})
endfunction()

# Sanitizers inside a build that has none are clang's: they compile in half of GCC's time, and so clang compiles the library
# too (as what it warns of is an error). A target's other objects may be GCC's.
find_program(FUSE_CLANG NAMES clang++-16 clang++-17 clang++-18 clang++-19 DOC "clang, for the sanitizers in other builds")
mark_as_advanced(FUSE_CLANG)
function(fuse_build_with_clang target)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(launcher ${PROJECT_SOURCE_DIR}/cmake/compile_with_clang.sh ${FUSE_CLANG})
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}" CXX_LINKER_LAUNCHER "${launcher}")
  endif()
endfunction()
