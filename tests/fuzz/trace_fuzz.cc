// Fuzz target: any bytes at all as a trace. Either it reads and replays, or it is refused with one
// sentence.
//
// scripts/fuzz makes a fuzzer of it; trace_corpus_test runs the corpus in every test run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/error.h"
#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/trace/replay.h"
#include "kernels/memory/trace/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  TraceLimits limits;
  limits.max_events = 100'000;
  try {
    const Trace trace = read_trace(input, "fuzz", limits);
    BareAllocator bare;
    const ReplayResult tensors = replay(trace, bare);
    ArithmeticSegments source;
    CachingAllocator caching(source);
    const ReplayResult blocks = replay(trace, caching);
    if (blocks.peak_allocated() < tensors.peak_allocated()) std::abort();
    if (blocks.peak_reserved() < blocks.peak_allocated()) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
