// Over random jobs: every suggestion, applied to the document it was made for, gives exactly the
// figure it promised.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/yaml_text.h"
#include "estimator/advise/recommend.h"
#include "estimator/job/read_job.h"
#include "tests/estimator/advise/estimate_dry.h"

namespace memfathom {
namespace {

class RandomJobs {
 public:
  explicit RandomJobs(std::uint32_t seed) : random_(seed) {}

  Node next() {
    const bool language = pick(2) == 0;
    const std::int64_t heads = 1 << pick(3);
    const std::string model =
        language ? fmt::format(
                       "model: {{config: {{model_type: llama, hidden_size: {}, intermediate_size: "
                       "{}, num_hidden_layers: {}, num_attention_heads: {}, "
                       "num_key_value_heads: {}, vocab_size: {}, hidden_act: silu}}}}\n",
                       32 * heads, 96 * heads, 1 + pick(4), heads, heads, 100 + pick(4000))
                 : fmt::format("model: {{config: {{model_type: cnn, width: {}, layers: {}}}}}\n",
                               4 + pick(12), 1 + pick(3));
    static constexpr const char* kPrecisions[] = {"fp32", "bf16", "amp-bf16", "amp-fp16"};
    static constexpr const char* kOptimizers[] = {"adamw", "sgd",
                                                  "{name: adam, implementation: for-loop}"};
    std::string text =
        model + fmt::format(
                    "training:\n  batch_size: {}\n  precision: {}\n  optimizer: {}\n  "
                    "gradient_accumulation_steps: {}\n",
                    1 + pick(48), kPrecisions[pick(4)], kOptimizers[pick(3)], 1 + pick(3));
    text += language
                ? fmt::format("  sequence_length: {}\n", 8 * (1 + pick(32)))
                : fmt::format("  image_size: [{}, {}]\n", 16 * (1 + pick(4)), 16 * (1 + pick(4)));
    if (pick(3) == 0) text += "  gradient_checkpointing: full\n";
    if (language && pick(3) == 0) text += "  lora: {rank: 4}\n";
    if (pick(2) == 0)
      text += fmt::format("parallel: {{num_gpus: {}, zero_stage: {}}}\n", 1 + pick(4), pick(3));
    text += fmt::format("target: {{memory: {}MiB}}\n", 1450 + pick(400));
    return parse_yaml(text, "random.yaml");
  }

 private:
  std::int64_t pick(int count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
  }
  std::mt19937 random_;
};

Bytes peak_of(const Node& document) { return estimate_dry(read_job(document)).totals.device_peak; }

TEST(SuggestionsPropertyTest, EveryPatchParsesAndGivesExactlyItsFigure) {
  RandomJobs jobs(20261116);
  int checked = 0, configurations = 0;
  for (int i = 0; i < 40; ++i) {
    const Node document = jobs.next();
    SCOPED_TRACE(to_yaml(document));
    const Recommendation recommendation = recommend(document, estimate_dry, {});
    const Bytes base = peak_of(document);
    for (const Suggestion& suggestion : recommendation.suggestions) {
      SCOPED_TRACE(suggestion.change);
      // As a user would: the patch as text, read again, laid over the file.
      const Node patch = parse_yaml(to_yaml(suggestion.patch), "patch.yaml");
      const Bytes peak = peak_of(patched(document, patch_of(patch)));
      EXPECT_EQ(peak, suggestion.device_peak);
      EXPECT_EQ(base - peak, suggestion.saves);
      ++checked;
    }
    for (const Configuration& configuration : recommendation.configurations) {
      EXPECT_EQ(peak_of(patched(document, patch_of(configuration.patch))),
                configuration.device_peak)
          << configuration.name;
      EXPECT_LE(configuration.device_peak, *recommendation.available) << configuration.name;
      ++configurations;
    }
    for (const LargestExtent& extent : recommendation.largest) {
      if (!extent.largest) continue;
      EXPECT_EQ(peak_of(patched(document, patch_of(extent.patch))), extent.device_peak)
          << extent.name;
    }
  }
  EXPECT_GT(checked, 100);
  EXPECT_GT(configurations, 30);
}

TEST(SuggestionsPropertyTest, SuggestionsOfOneKindAreOrderedByWhatTheySaveAndNoneCosts) {
  RandomJobs jobs(7);
  for (int i = 0; i < 10; ++i) {
    const std::vector<Suggestion> suggestions = suggest(jobs.next(), estimate_dry);
    for (std::size_t k = 0; k < suggestions.size(); ++k) {
      EXPECT_GT(suggestions[k].saves.count(), 0);
      if (k == 0 || suggestions[k].kind != suggestions[k - 1].kind) {
        const auto same = [&](const Suggestion& other) {
          return other.kind == suggestions[k].kind;
        };
        EXPECT_EQ(std::find_if(suggestions.begin(), suggestions.end(), same),
                  suggestions.begin() + static_cast<std::ptrdiff_t>(k));
      } else {
        EXPECT_LE(suggestions[k].saves, suggestions[k - 1].saves);
      }
    }
  }
}

}  // namespace
}  // namespace memfathom
