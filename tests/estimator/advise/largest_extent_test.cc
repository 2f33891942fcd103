#include "estimator/advise/largest_extent.h"

#include <gtest/gtest.h>

#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

// A machine whose memory is what the function says: the search is tested without a model.
EstimateCache answers_by(const Node& document, std::int64_t (*bytes)(const Job&)) {
  return EstimateCache(document, [bytes](const Job& job, std::optional<Bytes>) {
    Estimate estimate;
    estimate.totals.device_peak = estimate.totals.device_low = estimate.totals.device_high =
        Bytes{bytes(job)};
    return estimate;
  });
}

Node job_text(const char* training) {
  return parse_yaml(std::string("model: {preset: gpt2}\ntraining: ") + training, "job.yaml");
}

Extent extent_named(const Node& document, std::string_view name) {
  for (const Extent& extent : extents_of(document, read_job(document))) {
    if (extent.name == name) return extent;
  }
  ADD_FAILURE() << name;
  return {};
}

std::int64_t ten_a_sample(const Job& job) { return 100 + 10 * job.training.batch_size; }
std::int64_t square_of_batch(const Job& job) {
  return job.training.batch_size * job.training.batch_size;
}
std::int64_t area(const Job& job) {
  return job.training.settings.image_height * job.training.settings.image_width;
}
std::int64_t frames(const Job& job) { return job.training.settings.num_frames; }

// What a search costs is the estimates it asks for.
TEST(LargestTest, AStraightLineIsFollowedToItsEndInFiveLooks) {
  for (const std::int64_t limit : {130, 480, 5000, 9999}) {
    int asked = 0;
    EstimateCache answers(job_text("{batch_size: 1}"), [&](const Job& job, std::optional<Bytes>) {
      ++asked;
      Estimate estimate;
      estimate.totals.device_peak = estimate.totals.device_high = Bytes{ten_a_sample(job)};
      return estimate;
    });
    const Extent batch = extent_named(answers.document(), "batch_size");
    EXPECT_EQ(largest_that_fits(answers, {}, batch, {Bytes{limit}, {}}, 1024), (limit - 100) / 10);
    EXPECT_LE(asked, limit < 5000 ? 5 : 7) << limit;
  }
}

TEST(LargestTest, ImagesStayMultiplesOfTheirPatches) {
  const Node document =
      parse_yaml("model: {preset: dinov2-small}\ntraining: {image_size: 518}", "job.yaml");
  const Extent image = extent_named(document, "image_size");
  EXPECT_EQ(image.step, 14);
  EstimateCache answers = answers_by(document, area);
  EXPECT_EQ(largest_that_fits(answers, {}, image, {Bytes{230} * 230, {}}, 1), 224);
  EXPECT_EQ(extent_named(job_text("{image_size: 512}"), "image_size").step, 32);
}

TEST(LargestTest, NoSequenceIsLongerThanATableOfPositions) {
  const auto longest = [](const char* model) {
    const Node document =
        parse_yaml(std::string("training: {sequence_length: 512}\nmodel: ") + model, "job.yaml");
    EstimateCache answers = answers_by(document, ten_a_sample);
    return *largest_that_fits(answers, {}, extent_named(document, "sequence_length"),
                              {Bytes{1000}, {}}, 16);
  };
  EXPECT_EQ(longest("{preset: gpt2}"), 1024);
  EXPECT_EQ(longest("{preset: tinyllama-1.1b}"), 8192) << "rotated positions go on";
}

TEST(LargestTest, FindsTheBatchBelowAndAboveWhatTheJobHas) {
  const Node document = job_text("{batch_size: 16}");
  EstimateCache answers = answers_by(document, ten_a_sample);
  const Extent batch = extent_named(document, "batch_size");
  EXPECT_EQ(largest_that_fits(answers, {}, batch, {Bytes{130}, {}}, 64), 3);
  EXPECT_EQ(largest_that_fits(answers, {}, batch, {Bytes{1234}, {}}, 64), 113);
  EXPECT_EQ(largest_that_fits(answers, {}, batch, {Bytes{260}, {}}, 1), 16);
}

TEST(LargestTest, SaysNothingWhenNotEvenOneFits) {
  const Node document = job_text("{batch_size: 16}");
  EstimateCache answers = answers_by(document, ten_a_sample);
  EXPECT_EQ(
      largest_that_fits(answers, {}, extent_named(document, "batch_size"), {Bytes{109}, {}}, 64),
      std::nullopt);
}

TEST(LargestTest, IsRightForACurveToo) {
  const Node document = job_text("{batch_size: 1000}");
  EstimateCache answers = answers_by(document, square_of_batch);
  for (const std::int64_t limit : {1, 2, 99, 100, 101, 40000, 999999}) {
    const auto found =
        largest_that_fits(answers, {}, extent_named(document, "batch_size"), {Bytes{limit}, {}}, 4);
    ASSERT_TRUE(found) << limit;
    EXPECT_LE(*found * *found, limit);
    EXPECT_GT((*found + 1) * (*found + 1), limit);
  }
}

TEST(LargestTest, ShrinksBothSidesOfAnImageAlike) {
  const Node document = job_text("{image_size: [256, 512]}");
  EstimateCache answers = answers_by(document, area);
  const Extent image = extent_named(document, "image_size");
  const auto height = largest_that_fits(answers, {}, image, {Bytes{64 * 128 + 1}, {}}, 4);
  ASSERT_TRUE(height);
  EXPECT_EQ(*height, 64);
  EXPECT_EQ(image.text(*height), "64 x 128");
}

TEST(LargestTest, KeepsVideoFramesOneMoreThanAMultipleOfFour) {
  const Node document = job_text("{num_frames: 17}");
  EstimateCache answers = answers_by(document, frames);
  EXPECT_EQ(
      largest_that_fits(answers, {}, extent_named(document, "num_frames"), {Bytes{12}, {}}, 4), 9);
}

TEST(LargestTest, FittingMeansTheUpperEndOrTheProbabilityThatWasAskedFor) {
  Estimate estimate;
  estimate.totals.device_peak = Bytes{100};
  estimate.totals.device_high = Bytes{120};
  EXPECT_TRUE((Limit{Bytes{120}, {}}.holds(estimate)));
  EXPECT_FALSE((Limit{Bytes{119}, {}}.holds(estimate)));
  // What varying lengths would reserve beyond is cache.
  estimate.totals.device_high_equal_lengths = Bytes{110};
  EXPECT_TRUE((Limit{Bytes{110}, {}}.holds(estimate)));
  EXPECT_FALSE((Limit{Bytes{109}, {}}.holds(estimate)));
  estimate.verdict.probability_fits = 0.93;
  EXPECT_TRUE((Limit{Bytes{110}, 0.9}.holds(estimate)));
  EXPECT_FALSE((Limit{Bytes{110}, 0.95}.holds(estimate)));
}

}  // namespace
}  // namespace memfathom
