// Recommendation: what would make a job fit: single changes with what each saves, the largest
// extents, and whole configurations.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     void advise(const memfathom::Session& session, const memfathom::Job& job) {
//       const memfathom::Recommendation advice = session.recommend(job);
//       for (const memfathom::Configuration& one : advice.configurations)
//         std::cout << one.name << ": " << to_string(one.device_peak) << '\n' << one.yaml;
//     }
#pragma once

#include <memfathom/estimate.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace memfathom {
inline namespace v0 {

struct RecommendOptions {
  std::optional<double> probability;  // "fits" means at least this probability
};

struct LargestExtent {
  std::string name;  // batch_size, sequence_length, image_size, num_frames
  std::int64_t now = 0;
  std::optional<std::int64_t> largest;  // absent: not even the smallest fits
  bool at_least = false;                // the search ended at its bound
  Bytes device_peak;
};

struct Configuration {
  std::string name, aim;  // conservative, balanced, maximal
  std::vector<std::string> changes;
  Bytes device_peak;
  std::optional<Bytes> host_peak;
  std::int64_t effective_batch = 0;
  nlohmann::json patch;
  std::string yaml;  // the patch, to paste
};

struct Recommendation {
  std::optional<bool> fits;  // absent: the job names no target
  Bytes device_peak;
  std::optional<Bytes> capacity, available;
  std::vector<Suggestion> suggestions;
  std::vector<LargestExtent> largest;
  std::vector<Configuration> configurations;
  std::vector<std::string> assumptions, not_modelled, warnings;
  nlohmann::json json;
};

}  // namespace v0
}  // namespace memfathom
