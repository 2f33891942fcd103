#!/usr/bin/env bash
# scripts/common.sh registers the tests of a real GPU where there is one, also when the build tree is from before.
# gpu_tests_test.sh SOURCE
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/scripts"
cp "$1/scripts/common.sh" "$folder/scripts"

# A cmake that keeps the choices it is given, as the real one does.
cat >"$folder/bin/cmake" <<'END'
#!/bin/sh
[ "$1" = --preset ] || exit 0
mkdir -p build/$2
touch build/$2/build.ninja
printf '%s\n' "$@" | sed -n 's/^-D\([A-Z_]*\)=/\1:BOOL=/p' >build/$2/CMakeCache.txt
END
chmod +x "$folder/bin/cmake"

# registered CUDA EXIT_OF_NVIDIA_SMI: the choice in the build tree afterwards.
registered() {
  printf '#!/bin/sh\nexit %s\n' "$2" >"$folder/bin/nvidia-smi"
  chmod +x "$folder/bin/nvidia-smi"
  PATH="$folder/bin:$PATH" MEMFATHOM_CUDA=$1 bash -c '. "$1/scripts/common.sh"; build release "$cuda"' - "$folder"
  sed -n 's/^MEMFATHOM_GPU_TESTS:.*=//p' "$folder/build/release/CMakeCache.txt"
}

expect() {
  local wanted=$1 found
  shift
  found=$(registered "$@")
  [ "$found" = "$wanted" ] || { echo "CUDA $1, nvidia-smi ends with $2: wanted $wanted, found $found" >&2; exit 1; }
}

expect OFF ON 9
expect ON ON 0
expect OFF OFF 0
expect ON ON 0
expect OFF ON 9
