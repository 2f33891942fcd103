#include "estimator/run/varying_lengths.h"

#include <algorithm>
#include <random>

namespace memfathom {
namespace {

constexpr int kIterations = 120;
constexpr std::int64_t kShortest = 16;  // tokens; instruction data seldom has less

}  // namespace

void vary_lengths(TrainingLoop& loop, Network& network, std::int64_t longest) {
  // The engine's own numbers, since distributions differ between standard libraries.
  std::mt19937_64 random(20240607);
  const std::int64_t shortest = std::min(kShortest, longest);
  const auto span = static_cast<std::uint64_t>(longest - shortest + 1);
  for (int i = 0; i < kIterations; ++i) {
    network.set_length(shortest + static_cast<std::int64_t>(random() % span));
    loop.iterate();
  }
  network.set_length(longest);
  loop.iterate();
}

}  // namespace memfathom
