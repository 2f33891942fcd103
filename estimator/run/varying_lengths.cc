#include "estimator/run/varying_lengths.h"

#include <algorithm>
#include <random>

namespace memfathom {
namespace {

constexpr int kIterations = 40;
constexpr std::int64_t kShortest = 16;  // tokens; instruction data seldom has less

}  // namespace

Bytes vary_lengths(Session& session, TrainingLoop& loop, Network& network, const TrainingSpec& training) {
  const std::int64_t longest = training.settings.sequence_length;
  const auto peak = [&] { return Bytes{session.allocator().statistics().reserved_bytes.all.peak}; };
  if (longest <= kShortest || !network.set_length(longest)) return peak();
  // The engine's own numbers, since distributions differ between standard libraries.
  std::mt19937_64 random(20240607);
  for (int i = 0; i < kIterations; ++i) {
    const auto span = static_cast<std::uint64_t>(longest - kShortest + 1);
    network.set_length(kShortest + static_cast<std::int64_t>(random() % span));
    loop.iterate();
  }
  network.set_length(longest);
  loop.iterate();
  return peak();
}

}  // namespace memfathom
