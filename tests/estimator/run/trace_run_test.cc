// A recorded step with library calls: what the replay adds for the GPU that is asked about.
#include <gtest/gtest.h>

#include <fstream>

#include "core/document.h"
#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

class FftWorkspaces final : public WorkspaceModel {
 public:
  WorkspaceSize convolution(const ConvolutionQuery& query) const override {
    return {Bytes{query.dtype == DType::kFp16 ? 1 << 20 : 1 << 22}, Source::kMeasured};
  }
  WorkspaceSize fft(const FftQuery&) const override { return {Bytes{1 << 21}, Source::kMeasured}; }
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }
};

class TraceRunTest : public ::testing::Test {
 protected:
  DryRun run(const std::string& header, const std::string& call) {
    std::ofstream(path_) << header << R"(
{"op":"phase","name":"forward","iteration":2}
{"op":"alloc","id":1,"bytes":1048576)"
                         << call << "}\n";
    DryRunOptions options;
    options.workspaces = &workspaces_;
    const std::string job = R"({"model": {"trace": ")" + path_ + R"("}})";
    return run_dry(read_job(parse_json(job, "job.json")), options);
  }
  std::int64_t added(const std::string& call) {
    return run("{}", call).allocated_peak.count() - (1 << 20);
  }

 private:
  const TemporaryDirectory directory_;  // of this test alone: others run at the same time
  std::string path_ = (directory_ / "step.jsonl").string();
  FftWorkspaces workspaces_;
};

TEST_F(TraceRunTest, SizesAConvolutionByItsOwnType) {
  const std::string conv = R"(,"conv":{"kinds":["forward"],"input":[2,3,8,8],"weight":[4,3,3,3])";
  EXPECT_EQ(added(conv + "}"), 1 << 22);
  EXPECT_EQ(added(conv + R"(,"dtype":"fp16"})"), 1 << 20);
}

TEST_F(TraceRunTest, AddsTheWorkAreaOfATransformAndTheCopyOfAnInverseOne) {
  EXPECT_EQ(added(R"(,"fft":{"kind":"real_to_complex","extents":[64,64],"batch":4})"), 1 << 21);
  // [4, 64, 33] complex numbers of 8 bytes, rounded up to 512.
  EXPECT_EQ(added(R"(,"fft":{"kind":"complex_to_real","extents":[64,64],"batch":4})"),
            (1 << 21) + 4 * 64 * 33 * 8);
  EXPECT_TRUE(run("{}", R"(,"fft":{"kind":"real_to_complex","extents":[8]})").uses_cufft);
}

TEST_F(TraceRunTest, AddsTheBuffersOfAttentionsBackward) {
  const std::string shapes = R"("q":[2,8,100,60],"k":[2,8,100,60])";
  EXPECT_EQ(added(R"(,"attention":{"kernel":"flash",)" + shapes + "}"), 0);
  // Rows padded to 128, heads to 64: the sums and the fp32 gradient of q.
  EXPECT_EQ(added(R"(,"attention":{"kernel":"flash","backward":true,)" + shapes + "}"),
            4 * 2 * 8 * 128 * (1 + 64));
  // The sums, and the fp32 gradient of q in two tiles of 64 by 64 with their locks.
  EXPECT_EQ(added(R"(,"attention":{"kernel":"efficient","backward":true,)" + shapes + "}"),
            (4 * 2 * 8 * 100 + 511) / 512 * 512 + 4 * 2 * 8 * 2 * (64 * 64 + 4));
}

TEST_F(TraceRunTest, LoadsCudnnForARecurrentLayer) {
  EXPECT_TRUE(run("{}", R"(,"rnn":{})").uses_cudnn);
  EXPECT_FALSE(run("{}", "").uses_cudnn);
}

TEST_F(TraceRunTest, SaysWhatWasGuessedAndWidensTheInterval) {
  const DryRun guessed =
      run(R"({"guesses":[{"what":"nms: every box is kept","times":3,"bytes":4096}]})", "");
  ASSERT_EQ(guessed.assumptions.size(), 1u);
  EXPECT_EQ(guessed.assumptions[0], "recorded with a guess, 3 times: nms: every box is kept");
  EXPECT_EQ(guessed.reserved_uncertainty, Bytes{4096});
}

}  // namespace
}  // namespace memfathom
