#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/models/blocks/key_value_cache.h"
#include "estimator/run/iterations.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

// Counts what it is asked for.
class CountingNetwork final : public Network {
 public:
  explicit CountingNetwork(bool skips) : skips_(skips) {}

  void load_batch(std::int64_t, bool) override {}
  Tensor loss(Tensor*) override { return {}; }
  Tensor forward() override { return {}; }
  Tensor prefill() override { return {}; }
  Tensor decode() override {
    ++passes;
    last_skip = pending_;
    pending_ = 0;
    return {};
  }
  bool skip_tokens(std::int64_t tokens) override {
    if (!skips_) return false;
    pending_ = tokens;
    skipped += tokens;
    return true;
  }

  std::int64_t passes = 0, skipped = 0, last_skip = 0;

 private:
  bool skips_;
  std::int64_t pending_ = 0;
};

CountingNetwork after_generating(std::int64_t tokens, bool skips) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  TrainingSpec training;
  training.settings.new_tokens = tokens;
  CountingNetwork network(skips);
  generate(session, network, training, [](std::string_view) {});
  return network;
}

TEST(GenerationTest, DecodesTokenByTokenUpToFourThousand) {
  const CountingNetwork network = after_generating(4096, true);
  EXPECT_EQ(network.passes, 2 * 4095);
  EXPECT_EQ(network.skipped, 0);
}

TEST(GenerationTest, AMillionTokensTakeFourThousandPassesTheLastOfThemSingle) {
  constexpr std::int64_t kTokens = 1 << 20;
  const CountingNetwork network = after_generating(kTokens, true);
  EXPECT_EQ(network.passes + network.skipped, 2 * (kTokens - 1));
  EXPECT_LT(network.passes, 2 * 4200);
  EXPECT_EQ(network.last_skip, 0);
}

TEST(GenerationTest, AModelThatCannotSkipDecodesEveryToken) {
  EXPECT_EQ(after_generating(10'000, false).passes, 2 * 9'999);
}

// [1, 2, tokens, 8] in bf16.
Tensor keys_of(Session& session, std::int64_t tokens) {
  return session.empty({1, 2, tokens, 8}, DType::kBf16);
}

// The length of the keys that a layer's attention sees after `tokens` in all.
std::int64_t keys_seen(KvCache kind, std::int64_t window, bool skips) {
  constexpr std::int64_t kPrompt = 5;
  constexpr std::int64_t kNew = 40;
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  KeyValueCache cache(kind, 1, kPrompt + kNew);
  const auto update = [&](std::int64_t tokens) {
    Tensor k = keys_of(session, tokens);
    Tensor v = keys_of(session, tokens);
    cache.update(0, k, v, window);
    cache.advance(tokens);
    return k.size(2);
  };
  update(kPrompt);
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < kNew; ++i) {
    if (skips && i == 0) {
      cache.skip(kNew - 2);
      i += kNew - 2;
    }
    seen = update(1);
  }
  EXPECT_EQ(cache.length(), kPrompt + kNew);
  return seen;
}

TEST(GenerationTest, ACacheThatSkippedTokensIsAsLongAsOneThatSawThem) {
  for (const KvCache kind : {KvCache::kDynamic, KvCache::kStatic, KvCache::kTuple}) {
    EXPECT_EQ(keys_seen(kind, 0, true), keys_seen(kind, 0, false));
  }
  EXPECT_EQ(keys_seen(KvCache::kDynamic, 16, true), keys_seen(KvCache::kDynamic, 16, false));
}

TEST(GenerationTest, SaysThatALongAnswerIsApproximateInWhatIsReserved) {
  const auto job = [](int tokens) {
    return R"({"model": )" + small_llama() +
           R"(, "training": {"mode": "generate", "batch_size": 1, "sequence_length": 16, "new_tokens": )" +
           std::to_string(tokens) + "}}";
  };
  EXPECT_THAT(run_job(job(9000)).assumptions,
              testing::Contains(testing::HasSubstr("grown by 3 tokens at a time")));
  EXPECT_THAT(run_job(job(64)).assumptions,
              testing::Not(testing::Contains(testing::HasSubstr("tokens at a time"))));
}

}  // namespace
}  // namespace memfathom
