// Runs jobs written as JSON on the dry device, and sums what they report.
#pragma once

#include <initializer_list>
#include <string>

#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

inline DryRun run_job(const std::string& text) {
  return run_dry(read_job(parse_json(text, "job.json")), {});
}

// Bytes of these components at the allocated peak, over all modules.
inline std::int64_t at_peak(const DryRun& run, std::initializer_list<Component> components) {
  std::int64_t total = 0;
  for (const ComponentBytes& module : run.at_peak) {
    for (const Component c : components) total += module[static_cast<std::size_t>(c)];
  }
  return total;
}

// The highest live bytes of these components at the peaks of all steady phases with this name.
inline std::int64_t in_phase(const DryRun& run, const std::string& phase,
                             std::initializer_list<Component> components) {
  std::int64_t most = 0;
  for (const PhaseRecord& record : run.phases) {
    if (record.name != phase || record.iteration < 2) continue;
    std::int64_t total = 0;
    for (const ComponentBytes& module : record.live_at_peak) {
      for (const Component c : components) total += module[static_cast<std::size_t>(c)];
    }
    most = total > most ? total : most;
  }
  return most;
}

inline std::int64_t phase_peak(const DryRun& run, const std::string& phase) {
  std::int64_t most = 0;
  for (const PhaseRecord& record : run.phases) {
    if (record.name == phase && record.iteration >= 2 && record.allocated_peak > most)
      most = record.allocated_peak;
  }
  return most;
}

// A small Llama: 4 blocks of 200,960 parameters, 128,000 in each of embedding and head, and a norm
// of 128.
inline std::string small_llama() {
  return R"({"config": {"model_type": "llama", "hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4,
             "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 512,
             "tie_word_embeddings": false}})";
}

inline constexpr std::int64_t kSmallBlock = 4 * 128 * 128 + 3 * 128 * 352 + 2 * 128;
inline constexpr std::int64_t kSmallRoot = 2 * 1000 * 128 + 128;
inline constexpr std::int64_t kSmallLlama = 4 * kSmallBlock + kSmallRoot;

}  // namespace memfathom
