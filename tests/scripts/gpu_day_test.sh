#!/usr/bin/env bash
# scripts/gpu-day from beginning to end on the doubled CUDA device: every step is tried, and the archive holds what it should.
#   gpu_day_test.sh GPU_DAY BUILD DOUBLED_MODULE
set -euo pipefail
gpu_day=$1
export MEMFATHOM_BUILD=$2 MEMFATHOM_CUDA_MODULE=$3 MEMFATHOM_NVML=/nonexistent
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The doubles compute on one core: jobs come to the probe with a batch of 4.
cat >"$folder/probe" <<END
#!/bin/sh
sed 's/batch_size\\\\":[0-9]*/batch_size\\\\":4/' | exec "$MEMFATHOM_BUILD/bin/memfathom" __probe
END
chmod +x "$folder/probe"
export MEMFATHOM_PROBE=$folder/probe

# One workload is too few for a fit, which is refused with exit code 1; everything else goes well.
code=0
"$gpu_day" --rehearsal --out "$folder" || code=$?
[ "$code" = 1 ] || { echo "gpu-day ended with $code"; exit 1; }
tar -C "$folder" -xzf "$folder"/memfathom-gpu-day-*.tar.gz
expected=$'version\t0\nstatus\t0\ntests\t0\nselftest\t0\nbench\t0\ncalibrate\t1\nfit\t1\ncheck\t0'
diff <(echo "$expected") <(grep -v '^nvidia-smi' "$folder/steps.tsv") || { cat "$folder"/*.err; exit 1; }
grep -q '"gpu": "Doubled A100"' "$folder/status.txt"
grep -q '"benchmarks"' "$folder/bench.json"
grep -q '"workload": "elementwise/activations/fp32/256MiB"' "$folder/calibrate.txt"
grep -q '"status": "ok"' "$folder/calibrate.txt"
"$MEMFATHOM_BUILD/bin/memfathom" --db "$folder/gpu-day.db" db info | grep -q 'samples *1'
! "$gpu_day" --device 2>/dev/null
! "$gpu_day" --frobnicate 2>/dev/null
