#include "estimator/run/varying_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "kernels/memory/allocator/options.h"

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

bool note_lengths(const Job& job, Network& network, std::vector<std::string>& assumptions) {
  const std::int64_t length = job.training.settings.sequence_length;
  if (length == 0 || job.training.lengths || job.allocator.backend != Backend::kCaching ||
      parse_allocator_options(job.allocator.options).expandable_segments ||
      !network.set_length(length))
    return false;
  assumptions.push_back(
      fmt::format("all sequences have {} tokens (packed or padded); if lengths vary, more memory "
                  "is reserved: set training.lengths: varying to estimate that",
                  length));
  return true;
}

}  // namespace memfathom
