#include "kernels/tensor/framework_policy.h"

#include <charconv>

#include "core/error.h"

namespace memfathom {
namespace {

using namespace literals;

// "2.6.1+cu124" -> 206. Nothing readable: 0.
int version_number(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  auto [after, failure] = std::from_chars(text.data(), end, major);
  if (failure != std::errc{}) return 0;
  if (after != end && *after == '.') std::from_chars(after + 1, end, minor);
  return major * 100 + minor;
}

}  // namespace

FrameworkPolicy FrameworkPolicy::for_stack(std::string_view torch_version, int compute_capability) {
  FrameworkPolicy policy;
  const int version = version_number(torch_version);
  if (version > 0) policy.torch_version = version;
  policy.compute_capability = compute_capability;
  // CublasHandlePool.cpp: 32 MiB on Hopper, on Blackwell too in later versions; 8.125 MiB
  // elsewhere.
  if (compute_capability >= 90 && compute_capability < 120) policy.cublas_workspace = 32_MiB;
  policy.attention_has_gqa = policy.torch_version >= 205;
  return policy;
}

}  // namespace memfathom
