// A trace that was recorded at several sizes, read at others.
#include "kernels/memory/trace/variation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;

// bytes = 100 + 8 b + 2 b n: 356 at (4, 28), where it was recorded.
constexpr const char* kHeader =
    R"({"schema":"memfathom.trace/1","sizes":{"batch_size":4,"sequence_length":28},)"
    R"("guesses":[{"what":"a mask","times":1,"bytes":40,"vary":[0,10,0,0,0,0]}],)"
    R"("varies":{"names":["batch_size","sequence_length"],"terms":[[0,0],[1,0],[0,1],[1,1],[0,2],[1,2]],)"
    R"("recorded":[[4,28],[8,28],[4,56],[8,56],[4,84],[8,84]],"from":{"batch_size":2,"sequence_length":7},)"
    R"("checked":{"at":[12,112],"recorded_peak_bytes":1000,"interpolated_peak_bytes":1001}}})";
constexpr const char* kEvents = R"(
{"op":"alloc","id":1,"bytes":356,"phase":"forward","vary":{"/bytes":[100,8,0,2,0,0]}}
{"op":"alloc","id":2,"bytes":64,"phase":"forward"}
{"op":"alloc","id":3,"bytes":512,"phase":"forward","conv":{"kinds":["forward"],"input":[4,3,8,8],"weight":[4,3,3,3]},"vary":{"/bytes":[0,128,0,0,0,0],"/conv/input/0":[0,1,0,0,0,0]}}
)";

Trace read(const TraceSizes& sizes, const std::string& events = kEvents) {
  std::istringstream input(kHeader + events);
  return read_trace(input, "step.jsonl", {}, sizes);
}

std::string refusal(const TraceSizes& sizes, const std::string& events = kEvents) {
  try {
    read(sizes, events);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

TEST(VariationTest, ReadsTheRecordedSizesWhereNothingElseIsAsked) {
  for (const TraceSizes& sizes : {TraceSizes{}, TraceSizes{{"batch_size", 4}}}) {
    const Trace trace = read(sizes);
    EXPECT_EQ(trace.events[0].bytes, 356);
    EXPECT_EQ(trace.interpolation, "");
    EXPECT_EQ(trace.sizes.at("batch_size"), 4);
    EXPECT_EQ(trace.guesses[0].bytes, Bytes{40});
  }
}

TEST(VariationTest, SizesEveryAllocationAndCallByItsPolynomial) {
  const Trace trace = read({{"batch_size", 16}, {"sequence_length", 56}});
  EXPECT_EQ(trace.events[0].bytes, 100 + 8 * 16 + 2 * 16 * 56);
  EXPECT_EQ(trace.events[1].bytes, 64);
  EXPECT_EQ(trace.events[2].bytes, 128 * 16);
  EXPECT_EQ(trace.convolutions[0].query.input[0], 16);
  EXPECT_EQ(trace.guesses[0].bytes, Bytes{160});
  EXPECT_EQ(trace.sizes.at("sequence_length"), 56);
}

TEST(VariationTest, SaysFromWhatItInterpolatedAndHowFarAFreshRecordingWasOff) {
  const std::string said = read({{"batch_size", 16}}).interpolation;
  EXPECT_THAT(said, HasSubstr("batch size 16 from recordings at 4, 8"));
  EXPECT_THAT(said, HasSubstr("at 12 and 112 differed by +0.10 %"));
}

TEST(VariationTest, RefusesSizesThatWereNotRecorded) {
  EXPECT_THAT(refusal({{"batch_size", 1}}),
              HasSubstr("batch size is 1; the recordings hold from 2"));
  EXPECT_THAT(refusal({{"image_size", 8}}), HasSubstr("--vary image_size"));
  std::istringstream plain(
      "{\"sizes\":{\"batch_size\":4}}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":8}\n");
  try {
    read_trace(plain, "step.jsonl", {}, {{"batch_size", 8}});
    ADD_FAILURE() << "a step of one size was read at another";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("recorded at one size only (batch size 4)"));
  }
}

TEST(VariationTest, ASizeThatARecordingDoesNotNameIsTheJobsAndSaidSo) {
  std::istringstream plain(
      "{\"schema\":\"memfathom.trace/1\"}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":8}\n");
  const Trace trace = read_trace(plain, "step.jsonl", {}, {{"batch_size", 8}});
  ASSERT_EQ(trace.guesses.size(), 1u);
  EXPECT_EQ(trace.guesses[0].what,
            "the recording does not say its batch size; it is taken to be the job's, 8");
}

TEST(VariationTest, RefusesPolynomialsThatAreNone) {
  const auto event = [](const char* vary) {
    return std::string("\n{\"op\":\"alloc\",\"id\":1,\"bytes\":8,\"vary\":") + vary + "}\n";
  };
  const TraceSizes sizes{{"batch_size", 8}};
  EXPECT_THAT(refusal(sizes, event(R"({"/bytes":[1,2]})")), HasSubstr("is not a valid size"));
  EXPECT_THAT(refusal(sizes, event(R"({"/bytes":[-9000,0,0,0,0,0]})")),
              HasSubstr("is not a valid size"));
  EXPECT_THAT(refusal(sizes, event(R"({"/bytes":[1125899906842624,1125899906842624,0,0,0,0]})")),
              HasSubstr("is not a valid size"));
  EXPECT_THAT(refusal(sizes, event(R"({"/bytes":["x"]})")), HasSubstr("is not a list of numbers"));
  EXPECT_THAT(refusal(sizes, event(R"({"/conv/input/0":[1,0,0,0,0,0]})")),
              HasSubstr("does not have"));
  EXPECT_THAT(refusal(sizes, event(R"({"conv":[1,0,0,0,0,0]})")), HasSubstr("does not have"));
}

}  // namespace
}  // namespace memfathom
