#!/usr/bin/env bash
# scripts/gpu-day from beginning to end on the doubled CUDA device: every step is tried, and the archive holds what it should.
#   gpu_day_test.sh GPU_DAY BUILD DOUBLED_MODULE [FAKE_CUPTI]
set -euo pipefail
gpu_day=$1
export MEMFATHOM_BUILD=$2 MEMFATHOM_CUDA_MODULE=$3 MEMFATHOM_NVML=/nonexistent MEMFATHOM_CUPTI=${4:-/nonexistent}
driver=1  # without CUPTI's headers there is no double of it, and the step says that it recorded nothing
[ -z "${4:-}" ] || driver=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The doubles compute on one core: jobs come to the probe with a batch of 4.
cat >"$folder/probe" <<END
#!/bin/sh
sed 's/batch_size\\\\":[0-9]*/batch_size\\\\":4/' | exec "$MEMFATHOM_BUILD/bin/memfathom" __probe
END
# In place of a Python with torch: a simulated GPU that says it is one with PyTorch, and a snapshot.
cat >"$folder/python" <<END
#!/bin/sh
[ "\$1" != -m ] || exit 0
[ "\$1" = -c ] || { echo snapshot >"\$3"; exit; }
sed 's/"device":"cuda:0"/"device":"virtual:blue"/' | "$MEMFATHOM_BUILD/bin/memfathom" __probe |
  sed -e 's/"virtual:blue"/"Doubled A100"/' -e 's/"architecture":"virtual"/"architecture":"sm_80"/' \
    -e 's/"framework":"memfathom"/"framework":"pytorch"/'
END
mkdir "$folder/bin"
# In place of compute-sanitizer: one tool finds nothing, one finds something, one never ends.
cat >"$folder/bin/compute-sanitizer" <<'END'
#!/bin/sh
[ "$1" = --tool ] || exit 2
case "$2" in racecheck) exit 9 ;; initcheck) exec sleep 600 ;; esac
END
cat >"$folder/bin/docker" <<'END'
#!/bin/sh
[ "$1 $2 $3 $4" = "run --rm --gpus all" ] || exit 2
echo "$@"
END
chmod +x "$folder/probe" "$folder/python" "$folder/bin/"*
export MEMFATHOM_PROBE=$folder/probe PATH=$folder/bin:$PATH

# One workload is too few for a fit, which is refused with exit code 1; one tool has a finding, one takes too long.
code=0
"$gpu_day" --rehearsal --out "$folder" --python "$folder/python" --docker some/image --sanitizer-limit 1 2>"$folder/said" || code=$?
[ "$code" = 1 ] || { cat "$folder/said"; echo "gpu-day ended with $code"; exit 1; }
tar -C "$folder" -xzf "$folder"/memfathom-gpu-day-*.tar.gz
expected='environment 0|status 0|selftest 0|tests 0|memcheck 0|racecheck 9|initcheck 124|synccheck 0|bench 0|calibrate 1|fit 1'
expected+="|eager 0|mem-get-info 0|driver $driver"'|pytorch 1|history 0|shapes 0|snapshot 0|docker 0|check 0'
got=$(grep -v -e '^nvidia-smi' -e '^namespace' "$folder/steps.tsv" | tr '\t' ' ' | paste -sd'|')
[ "$got" = "$expected" ] || { echo "steps: $got"; cat "$folder"/*.err; exit 1; }
grep -q '"gpu": "Doubled A100"' "$folder/status.txt"
grep -q '"benchmarks"' "$folder/bench.json"
grep -q '"workload": "elementwise/activations/fp32/256MiB"' "$folder/calibrate.txt"
grep -q '"status": "ok"' "$folder/calibrate.txt"
grep -q 'libstdc++' "$folder/environment.txt"
[ "$driver" = 1 ] || grep -q ',alloc,device,.*libmemfathom_cuda.so' "$folder/driver.csv"
grep -q 'some/image scripts/gpu-day' "$folder/docker.txt"
grep -q -- "-v \(.*\):\1:ro" "$folder/docker.txt"  # its build would replace this one's, compiled elsewhere
grep -q '"device_metric": "mem-get-info' "$folder/mem-get-info.txt"
grep -q snapshot "$folder/snapshot.pickle"
grep -q '"recorded_allocations": [1-9]' "$folder/history.txt"
grep -q '"workload": "decoder/v32000/fp32/2048MiB"' "$folder/shapes.txt"
grep -q '^| collectives | not tried: communicators need two GPUs' "$folder/README.md"
# The archive says what it shows, what it does not, and that this was no measurement.
grep -q '^| selftest | shown | ' "$folder/README.md"
grep -q '^| racecheck | not shown: exit code 9' "$folder/README.md"
grep -q '^| initcheck | not shown: stopped after 1 s' "$folder/README.md"
grep -q 'no measurement' "$folder/README.md"
grep -q '^== racecheck | not shown' "$folder/said"
# Ours, lazy, eager, by cudaMemGetInfo and with the driver's records, and in a namespace of process ids where that is allowed;
# and three that say they are PyTorch's.
samples=7
! grep -q '^namespace.0' "$folder/steps.tsv" || samples=8
"$MEMFATHOM_BUILD/bin/memfathom" --db "$folder/gpu-day.db" db info | grep -q "samples *$samples"
! "$gpu_day" --device 2>/dev/null
! "$gpu_day" --frobnicate 2>/dev/null
