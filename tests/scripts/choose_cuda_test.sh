#!/usr/bin/env bash
# scripts/common.sh decides for CUDA only where both nvcc and a cuDNN that can be used are found.
# choose_cuda_test.sh SOURCE
set -euo pipefail
source_folder=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/include"
printf '#!/bin/sh\n' >"$folder/bin/nvcc"
chmod +x "$folder/bin/nvcc"

# choice [MAJOR MINOR]: what is decided where nvcc is found; no version: no cuDNN.
choice() {
  rm -f "$folder"/include/*
  if [ $# -gt 0 ]; then
    touch "$folder/include/cudnn_graph.h"
    printf '#define CUDNN_MAJOR %s\n#define CUDNN_MINOR %s\n' "$1" "$2" >"$folder/include/cudnn_version.h"
  fi
  PATH="$folder/bin:$PATH" MEMFATHOM_CUDA=auto MEMFATHOM_CUDNN_INCLUDE="$folder/include" \
    bash -c '. "$1/scripts/common.sh"; choose_cuda 2>/dev/null; echo "$cuda"' - "$source_folder"
}

expect() {
  local wanted=$1
  shift
  [ "$(choice "$@")" = "$wanted" ] || { echo "choice $*: wanted $wanted" >&2; exit 1; }
}

expect ON 9 8
expect ON 9 19
expect OFF 9 7
expect OFF 8 9
expect OFF
