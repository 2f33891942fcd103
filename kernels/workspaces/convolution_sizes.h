// The sizes of a convolution from which a workspace can be told without the library: what its
// copies and buffers would take.
//
// Seen by asking cuDNN about hundreds of thousands of convolutions: nearly every first choice wants
// either nothing, or copies of some of its tensors in another layout or number format, channels
// padded to 16 bytes, plus (weight gradient) a handful of partial sums of the weight in fp32. So a
// workspace is one of a few sums of whole tensors, to within 16 bytes, and what has to be learnt is
// which.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/workspace.h"

namespace memfathom {

// Bytes of the copies: channels padded to 16 bytes; the weight in its own type, except for its
// gradient, summed in fp32.
struct ConvolutionSizes {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t weight = 0;
};

// What a workspace is made of: so many halves of input copies, of output copies and of weights.
struct WorkspaceForm {
  std::int8_t input_halves = 0;
  std::int8_t output_halves = 0;
  std::int16_t weight_halves = 0;
};

// Every form that is told apart. The fitted tables name one by its position: the order stays.
inline constexpr auto kWorkspaceForms = [] {
  constexpr std::array<std::int8_t, 3> kCopies{0, 2, 4};
  constexpr std::array<std::int16_t, 14> kWeights{0,  1,  2,  4,  6,  8,   12,
                                                  16, 24, 32, 48, 64, 128, 256};
  std::array<WorkspaceForm, kCopies.size() * kCopies.size() * kWeights.size()> forms{};
  std::size_t at = 0;
  for (const std::int8_t input : kCopies) {
    for (const std::int8_t output : kCopies) {
      for (const std::int16_t weights : kWeights) forms[at++] = {input, output, weights};
    }
  }
  return forms;
}();

inline constexpr int kConvolutionFeatureCount = 16;
using ConvolutionFeatures = std::array<float, kConvolutionFeatureCount>;

// The sizes and features of a query; nothing when its shapes make no convolution.
struct ConvolutionProfile {
  ConvolutionSizes sizes;
  ConvolutionFeatures features;
};
std::optional<ConvolutionProfile> measure(const ConvolutionQuery& query);

std::int64_t bytes_of(const WorkspaceForm& form, const ConvolutionSizes& sizes);

}  // namespace memfathom
