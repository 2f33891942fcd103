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
  bool frontier = false;              // memory against time, too
};

struct LargestExtent {
  std::string name;  // batch_size, sequence_length, image_size, num_frames
  std::int64_t now = 0;
  std::optional<std::int64_t> largest;  // absent: not even the smallest fits
  bool at_least = false;                // the search ended at its bound
  Bytes device_peak;
};

struct Configuration {
  std::string name, aim;  // conservative, balanced, maximal, same-training
  std::vector<std::string> changes;
  Bytes device_peak;
  std::optional<Bytes> host_peak;
  std::int64_t effective_batch = 0;
  nlohmann::json patch;
  std::string yaml;  // the patch, to paste
  bool trains_the_same = true;
  double time_factor = 1;  // roughly, of the time per sample of the unchanged job
  std::string time_basis;
};

// A set of changes that no other one beats in memory and in time.
struct FrontierPoint {
  std::vector<std::string> names, changes;
  Bytes device_peak;
  std::optional<Bytes> host_node;
  double time_factor = 1;
  std::string time_basis;
  bool trains_the_same = true;
  bool fits = false;
  nlohmann::json patch;
};

struct Recommendation {
  std::optional<bool> fits;  // absent: the job names no target
  Bytes device_peak;
  std::optional<Bytes> capacity, available;
  std::vector<Suggestion> suggestions;
  std::vector<LargestExtent> largest;
  std::vector<Configuration> configurations;
  std::vector<FrontierPoint> frontier;  // if asked for; the quickest first
  std::string time_rates;               // the rates behind the time factors
  std::optional<Bytes> host_memory;     // the limit of a node's host, where one is known
  std::vector<std::string> assumptions, not_modelled, warnings;
  nlohmann::json json;
};

}  // namespace v0
}  // namespace memfathom
