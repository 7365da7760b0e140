# Finds the CUDA toolkit's headers. Nothing of CUDA is linked: the driver, NVRTC and cuBLASLt are opened at
# run time, so only headers are asked for. Sets FUSE_COMPILER_HAS_CUDA (0/1) and FUSE_CUDA_INCLUDE_DIR.
# SPDX-License-Identifier: Apache-2.0
include_guard()

set(FUSE_COMPILER_HAS_CUDA 0)
if(NOT FUSE_COMPILER_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "FUSE_COMPILER_CUDA=${FUSE_COMPILER_CUDA}: use AUTO, ON or OFF")
endif()
if(FUSE_COMPILER_CUDA STREQUAL "OFF")
  return()
endif()

set(roots ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_PATH} $ENV{CUDA_HOME} /usr/local/cuda)
file(GLOB versioned LIST_DIRECTORIES true /usr/local/cuda-*)
list(SORT versioned COMPARE NATURAL ORDER DESCENDING)
set(candidates)
foreach(root IN LISTS roots versioned)
  list(APPEND candidates ${root}/include ${root}/targets/x86_64-linux/include
       ${root}/targets/sbsa-linux/include)
endforeach()
list(APPEND candidates /usr/include)

# All three headers from one directory: of two toolkits, one must win.
set(FUSE_CUDA_INCLUDE_DIR)
foreach(dir IN LISTS candidates)
  if(EXISTS ${dir}/cuda.h AND EXISTS ${dir}/nvrtc.h AND EXISTS ${dir}/cublasLt.h)
    set(FUSE_CUDA_INCLUDE_DIR ${dir})
    break()
  endif()
endforeach()

if(FUSE_CUDA_INCLUDE_DIR)
  set(FUSE_COMPILER_HAS_CUDA 1)
  message(STATUS "CUDA headers: ${FUSE_CUDA_INCLUDE_DIR}")
elseif(FUSE_COMPILER_CUDA STREQUAL "ON")
  message(FATAL_ERROR "FUSE_COMPILER_CUDA=ON, but no directory has cuda.h, nvrtc.h and cublasLt.h. Install the "
                      "CUDA toolkit or point CUDAToolkit_ROOT at one; AUTO or OFF builds without the device.")
else()
  message(STATUS "CUDA headers: none (cuda.h, nvrtc.h, cublasLt.h); the cuda device is not built")
endif()
