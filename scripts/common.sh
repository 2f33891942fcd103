# Sourced by the scripts: where the project is, CUDA or not, one way to build.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 4
cuda=${MEMFATHOM_CUDA:-auto}  # ON, OFF or auto
jobs=${MEMFATHOM_JOBS:-$(nproc)}

say() { printf '== %s\n' "$*" >&2; }

# take_cuda_option WORD: true when the word was --host or --cuda.
take_cuda_option() {
  case "$1" in
    --host) cuda=OFF ;;
    --cuda) cuda=ON ;;
    *) return 1 ;;
  esac
}

find_nvcc() { command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc; }; }

# The folder of cuDNN's headers, if they are of 9.8 or newer (kernels/devices/cuda/cudnn/CMakeLists.txt says why).
find_cudnn() {
  local folder version
  for folder in ${MEMFATHOM_CUDNN_INCLUDE:-/usr/local/cuda/include /usr/local/include /usr/include "/usr/include/$(uname -m)-linux-gnu"}; do
    [ -f "$folder/cudnn_graph.h" ] || continue
    version=$(awk '/^#define CUDNN_(MAJOR|MINOR) / { n = n * 100 + $3 } END { print n + 0 }' "$folder/cudnn_version.h" 2>/dev/null)
    [ "${version:-0}" -lt 908 ] || { echo "$folder"; return; }
  done
  return 1
}

choose_cuda() {
  local nvcc
  nvcc=$(find_nvcc) || nvcc=""
  case "$cuda" in
    auto)
      cuda=OFF
      if [ -z "$nvcc" ]; then say "building without CUDA: no nvcc found"
      elif ! find_cudnn >/dev/null; then
        say "building without CUDA: found $nvcc, but no headers of cuDNN 9.8 or newer (NVIDIA's packages cudnn9-cuda-12, cudnn9-cuda-13)"
      else cuda=ON; say "building with CUDA: found $nvcc (--host builds without)"; fi ;;
    ON) say "building with CUDA, as asked" ;;
    OFF) say "building without CUDA, as asked" ;;
    *) say "MEMFATHOM_CUDA is \"$cuda\"; it must be ON, OFF or auto"; exit 2 ;;
  esac
}

# has_gpu: true where a build with CUDA finds a card to run on.
has_gpu() { [ "$cuda" = ON ] && nvidia-smi -L >/dev/null 2>&1; }

# configure PRESET CUDA: makes the build tree when there is none yet, or when the choice of CUDA or of the tests on a real GPU
# changed (Ninja runs CMake again by itself when a list of sources changed). A tree that was made by hand stays as it is.
configure() {
  local preset=$1 with_cuda=$2 tree="build/$1" gpu_tests=OFF
  ! has_gpu || gpu_tests=ON
  if [ -f "$tree/build.ninja" ] && grep -q "^MEMFATHOM_CUDA:.*=$with_cuda$" "$tree/CMakeCache.txt" &&
    ! grep "^MEMFATHOM_GPU_TESTS:" "$tree/CMakeCache.txt" | grep -qv "=$gpu_tests$"; then return; fi
  mkdir -p build
  cmake --preset "$preset" -DMEMFATHOM_CUDA="$with_cuda" -DMEMFATHOM_GPU_TESTS="$gpu_tests" >"$tree.configure.log" 2>&1 ||
    { cat "$tree.configure.log" >&2; exit 1; }
}

# build PRESET CUDA [TARGET...]
build() {
  local preset=$1 with_cuda=$2
  shift 2
  configure "$preset" "$with_cuda"
  cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
}
