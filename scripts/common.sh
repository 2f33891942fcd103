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

choose_cuda() {
  local nvcc
  nvcc=$(find_nvcc) || nvcc=""
  case "$cuda" in
    auto)
      if [ -n "$nvcc" ]; then cuda=ON; say "building with CUDA: found $nvcc (--host builds without)"
      else cuda=OFF; say "building without CUDA: no nvcc found"; fi ;;
    ON) say "building with CUDA, as asked" ;;
    OFF) say "building without CUDA, as asked" ;;
    *) say "MEMFATHOM_CUDA is \"$cuda\"; it must be ON, OFF or auto"; exit 2 ;;
  esac
}

# build PRESET CUDA [TARGET...]: configures when there is no build tree yet or the choice of CUDA changed (Ninja runs CMake
# again by itself when a list of sources changed), then builds.
build() {
  local preset=$1 with_cuda=$2 tree="build/$1"
  shift 2
  if [ ! -f "$tree/build.ninja" ] || ! grep -q "^MEMFATHOM_CUDA:.*=$with_cuda$" "$tree/CMakeCache.txt"; then
    mkdir -p build
    cmake --preset "$preset" -DMEMFATHOM_CUDA="$with_cuda" >"$tree.configure.log" 2>&1 ||
      { cat "$tree.configure.log" >&2; exit 1; }
  fi
  cmake --build "$tree" --parallel "$jobs" ${1:+--target "$@"}
}
