#!/usr/bin/env bash
# scripts/fuzz with pretend targets: one that cannot run fails, and a finding counts only as long as the target fails on it.
# fuzz_test.sh SOURCE
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bin,scripts,build/fuzz/fuzz,build/fuzz/findings}
cp "$1"/scripts/{common.sh,fuzz} "$folder/scripts"
printf '#!/bin/sh\n' | tee "$folder/bin/cmake" "$folder/bin/nvidia-smi" >"$folder/scripts/install-dependencies"
chmod +x "$folder"/bin/* "$folder/scripts/install-dependencies"
export PATH="$folder/bin:$PATH"

# target NAME COMMANDS: what the pretend fuzz target does.
target() {
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/build/fuzz/fuzz/$1"
  chmod +x "$folder/build/fuzz/fuzz/$1"
}
expect() {
  local wanted=$1 found=passed
  shift
  "$folder/scripts/fuzz" 1 "$@" 2>/dev/null || found=failed
  [ "$found" = "$wanted" ] || { echo "scripts/fuzz 1 $*: wanted $wanted, found $found" >&2; exit 1; }
}

target good_fuzz 'echo "stat::number_of_executed_units: 9" >&2'
target dying_fuzz 'exit 1'
expect passed good_fuzz
expect failed missing_fuzz
expect failed dying_fuzz
expect failed good_fuzz dying_fuzz

finding=$folder/build/fuzz/findings/mended_fuzz-crash-1
touch "$finding"
target mended_fuzz 'case "$*" in *crash-1) exit 77 ;; esac'
expect failed mended_fuzz
[ -e "$finding" ] || { echo "a finding that still fails was removed" >&2; exit 1; }
target mended_fuzz 'exit 0'
expect passed mended_fuzz
[ ! -e "$finding" ] || { echo "a finding that passes now was kept" >&2; exit 1; }
