# shellcheck shell=bash
# What this machine has of CUDA: sourced by check and first, which set root, fuse and scratch.
# SPDX-License-Identifier: Apache-2.0

# shellcheck disable=SC2154,SC2034  # what is set there, and what is read there

# Folders where a CUDA library may lie although the loader does not look there: toolkits, Python wheels, containers.
library_folders() {
  local site
  printf '%s\n' /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib \
    {"${CUDA_HOME:-/usr/local/cuda}","${CUDA_PATH:-/usr/local/cuda}",/usr/local/cuda,/usr/local/cuda-*}/{lib64,targets/x86_64-linux/lib}
  {
    if command -v python3 >/dev/null; then python3 -c 'import sys; print("\n".join(sys.path))' || true; fi
    printf '%s\n' {"${HOME:-/root}"/.local,/usr,/usr/local,/opt/*,"${VIRTUAL_ENV:-/usr}"}/lib/python3*/{site,dist}-packages
  } | while read -r site; do
    if [[ $site ]]; then printf '%s\n' "$site"/nvidia/{cu13,cuda_nvrtc,cublas,*}/lib; fi
  done
}

# use_library WHAT VARIABLE SONAME...: prints where the first is; one that only we know of joins LD_LIBRARY_PATH.
use_library() {
  local what=$1 variable=$2 soname folder found path=${LD_LIBRARY_PATH:-}
  shift 2
  if [[ ${!variable:-} ]]; then
    printf '%-10s %s (%s)\n' "$what" "${!variable}" "$variable"
    return
  fi
  for soname in "$@"; do
    found=$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -n "s|^\s*$soname .*x86-64.* => ||p" | head -1)
    for folder in ${path//:/ }; do
      if [[ -e $folder/$soname ]]; then found=$folder/$soname && break; fi
    done
    if [[ $found ]]; then printf '%-10s %s\n' "$what" "$found" && return; fi
  done
  for soname in "$@"; do
    while read -r folder; do
      [[ -e $folder/$soname ]] || continue
      export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
      printf '%-10s %s (added to LD_LIBRARY_PATH)\n' "$what" "$folder/$soname"
      return
    done <"$scratch/folders"
  done
  printf '%-10s none: looked for %s\n' "$what" "$*"
  return 1
}

# Prints what the machine has; sets nvrtc to yes or nothing.
find_libraries() {
  library_folders | awk '!seen[$0]++' >"$scratch/folders"
  nvrtc=yes
  use_library driver FUSE_LIBCUDA libcuda.so.1 || true
  use_library NVRTC FUSE_LIBNVRTC libnvrtc.so.13 libnvrtc.so.12 || nvrtc=
  use_library cuBLASLt FUSE_LIBCUBLASLT libcublasLt.so.13 libcublasLt.so.12 || true
}

# A tool of the CUDA toolkit or of Nsight Compute, which need not be on PATH.
find_tool() {  # NAME
  local candidate
  for candidate in "$(command -v "$1" || true)" \
    {"${CUDA_HOME:-/usr/local/cuda}",/usr/local/cuda,/usr/local/cuda-*}/{bin,compute-sanitizer}/"$1" /opt/nvidia/nsight-compute/*/"$1"; do
    if [[ -x $candidate ]]; then printf '%s\n' "$candidate" && return; fi
  done
  return 1
}

# Sets gpu to the GPU's name, or no_gpu or broken_gpu to yes, and prints which; what fuse said is in $scratch/gpu.
gpu='' no_gpu='' broken_gpu='' gpu_problem=''
find_gpu() {
  local status=0 why
  timeout -k 5 60 "$fuse" fusec run "$root/examples/graphs/softmax.fuse" --device cuda >"$scratch/gpu" 2>&1 </dev/null || status=$?
  if ((status == 0)); then
    gpu=$(sed -n 's/^device *cuda:0 \(.*\) (sm_[0-9]*)$/\1/p' "$scratch/gpu")
    printf '%-10s %s\n' GPU "$gpu" && return
  fi
  why=$(sed -n 's/^error: \(.*\)/\1/p' "$scratch/gpu" | head -1 | sed 's/; looked for$//')
  if ((status == 124)); then why='softmax.fuse still runs after 60 s'; fi
  if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null && grep -qE 'NVIDIA driver was not found|CUDA_ERROR_NO_DEVICE' "$scratch/gpu"; then
    no_gpu=yes gpu_problem=$why
    printf '%-10s none: %s\n' GPU "$why"
  else
    broken_gpu=yes gpu_problem=$why
    printf '%-10s does not work: %s\n' GPU "$why"
  fi
}
