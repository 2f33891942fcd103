// architecture: the compute capability from the name of a GPU's architecture.
#pragma once

#include <charconv>
#include <string_view>

namespace memfathom {

// "sm_80" -> 80; 0 for anything else, such as the cpu's "x86_64".
inline int compute_capability(std::string_view architecture) {
  constexpr std::string_view kSmPrefix = "sm_";
  if (!architecture.starts_with(kSmPrefix)) return 0;
  architecture.remove_prefix(kSmPrefix.size());
  int number = 0;
  const char* end = architecture.data() + architecture.size();
  const auto [after, failure] = std::from_chars(architecture.data(), end, number);
  return failure == std::errc{} && after == end ? number : 0;
}

// The oldest that CUDA 12 supports.
constexpr int kMaxwell = 50;
// The first with bf16 in its tensor cores and in cuDNN's convolutions.
constexpr int kAmpere = 80;

}  // namespace memfathom
