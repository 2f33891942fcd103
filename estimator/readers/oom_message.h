// OomMessage: an out-of-memory message of PyTorch, JAX, vLLM or a CUDA library, as figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/bytes.h"
#include "core/enum_names.h"

namespace memfathom {

enum class OomSource : std::uint8_t { kPytorch, kJax, kVllm, kCublas, kCudnn, kNccl, kCuda };

template <>
inline constexpr auto kEnumNames<OomSource> =
    std::to_array<EnumName<OomSource>>({{OomSource::kPytorch, "pytorch"},
                                        {OomSource::kJax, "jax"},
                                        {OomSource::kVllm, "vllm"},
                                        {OomSource::kCublas, "cublas"},
                                        {OomSource::kCudnn, "cudnn"},
                                        {OomSource::kNccl, "nccl"},
                                        {OomSource::kCuda, "cuda"}});

// Figures as printed, so with two digits after the point; absent where the wording has none.
struct OomMessage {
  OomSource source = OomSource::kPytorch;
  std::int64_t line = 0;      // of the text, from 1
  std::int64_t messages = 0;  // in the text; this is the last one
  std::optional<std::int64_t> gpu;
  std::optional<Bytes> tried;
  std::optional<Bytes> capacity;
  std::optional<Bytes> free;
  std::optional<Bytes> in_process;   // in use by this process, non-PyTorch memory included
  std::optional<Bytes> in_others;    // in use by other processes on the GPU
  std::optional<Bytes> allocated;    // by tensors
  std::optional<Bytes> reserved;     // by the caching allocator
  std::optional<Bytes> unallocated;  // reserved, but held by no tensor
  std::optional<Bytes> outside;      // of this process, outside the caching allocator

  // What the GPU must have for this process's tensors and this request.
  std::optional<Bytes> tensors_needed() const {
    return tried && allocated ? std::optional(*tried + *allocated) : std::nullopt;
  }
};

// The last out-of-memory message of a log; nullopt if it has none. The text may be anything.
std::optional<OomMessage> find_oom_message(std::string_view text);

}  // namespace memfathom
