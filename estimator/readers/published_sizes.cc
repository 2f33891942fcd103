#include "estimator/readers/published_sizes.h"

#include <array>
#include <string>

#include "core/lowercase.h"

namespace memfathom {
namespace {

struct PublishedSize {
  std::string_view beginning;  // of the name without its owner
  double billions;
};

// From the cards on huggingface.co. The longest beginning that fits decides.
constexpr auto kSizes = std::to_array<PublishedSize>({
    {"llama-4-scout-17b-16e", 109},
    {"llama-4-maverick-17b-128e", 400},
    {"gemma-3n-e2b", 5},  // E: what is on the GPU with its embeddings elsewhere
    {"gemma-3n-e4b", 8},
    {"jamba-v0.1", 52},
    {"ai21-jamba-1.5-mini", 52},
    {"ai21-jamba-1.5-large", 398},
    {"dbrx", 132},
    {"glm-4.7-flash", 30},
    {"glm-4.6v-flash", 9},
    {"minimax-m2", 230},
    {"magistral-small", 24},
    {"granite-4.0-tiny", 7},
    {"paddleocr-vl", 0.9},
});

}  // namespace

double published_parameters(std::string_view name) {
  const std::string stem = lowercase(std::string(name.substr(name.rfind('/') + 1)));
  const PublishedSize* longest = nullptr;
  for (const PublishedSize& size : kSizes) {
    if (!stem.starts_with(size.beginning)) continue;
    const bool ends = stem.size() == size.beginning.size() || stem[size.beginning.size()] == '-' ||
                      stem[size.beginning.size()] == '_';
    if (ends && (longest == nullptr || size.beginning.size() > longest->beginning.size()))
      longest = &size;
  }
  return longest != nullptr ? longest->billions * 1e9 : 0;
}

}  // namespace memfathom
