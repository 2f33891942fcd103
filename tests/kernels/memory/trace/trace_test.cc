#include "kernels/memory/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/trace/gzip.h"
#include "kernels/memory/trace/tracing_allocator.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHeader = R"({"schema":"memfathom.trace/1","device":"cuda"})";

Trace read(const std::string& events, const TraceLimits& limits = {}) {
  std::istringstream input(std::string(kHeader) + "\n" + events);
  return read_trace(input, "step.jsonl", limits);
}

std::string refusal(const std::string& text, const TraceLimits& limits = {}) {
  std::istringstream input(text);
  try {
    read_trace(input, "step.jsonl", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

std::string refused_event(const std::string& events) {
  return refusal(std::string(kHeader) + "\n" + events);
}

std::vector<std::string> spans_of(const Trace& trace) {
  std::vector<std::string> spans;
  for (const Trace::Span& span : trace.spans) {
    spans.push_back(span.phase + std::to_string(span.iteration) + "@" +
                    std::to_string(span.first_event));
  }
  return spans;
}

TraceEvent convolution_event() {
  TraceEvent event;
  event.op = TraceOp::kAlloc;
  event.id = 1;
  event.bytes = 4096_B;
  event.stream = 3;
  event.phase = "forward";
  event.iteration = 2;
  event.name = "aten.convolution";
  event.module = "features.\"0\"\n";
  event.tag = "activations";
  TraceConvolution convolution;
  convolution.kinds = {ConvolutionKind::kDataGradient, ConvolutionKind::kWeightGradient};
  convolution.geometry.input = {32, 3, 224, 224};
  convolution.geometry.weight = {64, 3, 7, 7};
  convolution.geometry.stride = {2, 2};
  convolution.geometry.padding = {3, 3};
  convolution.geometry.dilation = {1, 1};
  convolution.geometry.groups = 1;
  convolution.geometry.channels_last = true;
  event.convolution = convolution;
  return event;
}

TEST(TraceTest, ReadsBackPlainAndCompressedTraces) {
  TraceEvent phase;
  phase.op = TraceOp::kPhase;
  phase.phase = "forward";
  phase.iteration = 2;
  TraceEvent release;
  release.op = TraceOp::kFree;
  release.id = 1;
  release.stream = 3;
  const std::vector<TraceEvent> events{phase, convolution_event(), release};
  for (const bool gzip : {false, true}) {
    std::stringstream file;
    TraceWriter writer(file, gzip, R"({"model":"resnet50","schema":"other"})");
    for (const TraceEvent& event : events) writer.write(event);
    writer.finish();
    EXPECT_EQ(file.str().substr(0, 2) == "\x1f\x8b", gzip);
    TraceReader reader(file, "step.jsonl");
    EXPECT_EQ(reader.header(), R"({"schema":"memfathom.trace/1","model":"resnet50"})");
    TraceEvent event;
    for (const TraceEvent& expected : events) {
      ASSERT_TRUE(reader.next(event));
      EXPECT_EQ(event, expected);
    }
    EXPECT_EQ(reader.line(), 4);
    EXPECT_FALSE(reader.next(event));
  }
}

TEST(TraceTest, ReadsBackLibraryCallsAndLines) {
  TraceEvent transform;
  transform.id = 1;
  transform.bytes = 4096_B;
  transform.line = "train.py:17";
  transform.fft = FftQuery{FftKind::kComplexToReal, {64, 64}, 8, DType::kFp32};
  TraceEvent attention;
  attention.id = 2;
  attention.bytes = 4096_B;
  attention.attention = TraceAttention{true,
                                       {.backward = true,
                                        .causal = true,
                                        .dtype = DType::kBf16,
                                        .q = {2, 8, 128, 64},
                                        .k = {2, 4, 128, 64},
                                        .strides = {}}};
  TraceEvent reserve;
  reserve.id = 3;
  reserve.bytes = 4096_B;
  reserve.is_recurrent = true;
  TraceEvent convolution = convolution_event();
  convolution.id = 4;
  convolution.convolution->names_dtype = true;
  convolution.convolution->geometry.dtype = DType::kBf16;
  const std::vector<TraceEvent> events{transform, attention, reserve, convolution};
  std::stringstream file;
  TraceWriter writer(file, false);
  for (const TraceEvent& event : events) writer.write(event);
  writer.finish();
  TraceReader reader(file, "step.jsonl");
  TraceEvent event;
  for (const TraceEvent& expected : events) {
    ASSERT_TRUE(reader.next(event));
    EXPECT_EQ(event, expected);
  }
}

TEST(TraceTest, TakesTheTypeOfAConvolutionFromItsCallOrFromTheHeader) {
  const std::string conv = R"("conv":{"kinds":["forward"],"input":[2,3,8,8],"weight":[4,3,3,3])";
  const Trace trace = read(R"({"op":"alloc","id":1,"bytes":8,)" + conv + "}}\n" +
                           R"({"op":"alloc","id":2,"bytes":8,)" + conv + R"(,"dtype":"fp16"}})");
  ASSERT_EQ(trace.convolutions.size(), 2u);
  EXPECT_EQ(trace.convolutions[0].query.dtype, DType::kFp32);
  EXPECT_EQ(trace.convolutions[1].query.dtype, DType::kFp16);
}

TEST(TraceTest, KeepsTheGuessesOfTheHeader) {
  std::istringstream input(
      R"({"guesses":[{"what":"nms: every box is kept","times":2,"bytes":4096}]})"
      "\n{\"op\":\"alloc\",\"id\":1,\"bytes\":1}\n");
  const Trace trace = read_trace(input, "step.jsonl");
  ASSERT_EQ(trace.guesses.size(), 1u);
  EXPECT_EQ(trace.guesses[0].what, "nms: every box is kept");
  EXPECT_EQ(trace.guesses[0].times, 2);
  EXPECT_EQ(trace.guesses[0].bytes, 4096_B);
}

TEST(HostileTraceTest, RefusesLibraryCallsThatMakeNoSense) {
  const auto refused_call = [](const std::string& call) {
    return refused_event(R"({"op":"alloc","id":1,"bytes":8,)" + call + "}");
  };
  EXPECT_THAT(refused_call(R"("fft":{"kind":"sideways","extents":[4]})"), HasSubstr("kind"));
  EXPECT_THAT(refused_call(R"("fft":{"kind":"real_to_complex","extents":[]})"),
              HasSubstr("one to three extents"));
  EXPECT_THAT(refused_call(R"("fft":{"kind":"real_to_complex","extents":[0]})"),
              HasSubstr("at least 1"));
  EXPECT_THAT(refused_call(R"("fft":7)"), HasSubstr("\"fft\" is a number"));
  EXPECT_THAT(refused_call(R"("attention":{"kernel":"magic","q":[1,1,1,1],"k":[1,1,1,1]})"),
              HasSubstr("flash or efficient"));
  EXPECT_THAT(refused_call(R"("attention":{"kernel":"flash","q":[1,1,1],"k":[1,1,1,1]})"),
              HasSubstr("four extents"));
  EXPECT_THAT(refusal("{\"guesses\":[{\"times\":1}]}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":1}"),
              HasSubstr("what"));
}

TEST(TraceTest, ReadsConcatenatedGzipMembersAsOneFile) {
  std::stringstream file;
  for (const std::string part : {"{}\n{\"op\":\"alloc\",\"id\":1,\"by", "tes\":7}\n"}) {
    GzipWriter writer(file);
    writer.write(part);
    writer.finish();
  }
  const Trace trace = read_trace(file, "step.jsonl.gz");
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].bytes, 7);
}

TEST(TraceTest, IgnoresUnknownKeysEmptyLinesAndCarriageReturns) {
  const Trace trace = read(
      "{\"op\":\"alloc\",\"id\":1,\"bytes\":10,\"colour\":{\"a\":[1,{}]},\"x\":null}\r\n\n"
      "  \n{\"op\":\"free\",\"id\":1,\"y\":1.5,\"z\":true}");
  EXPECT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].bytes, 10);
  EXPECT_TRUE(trace.events[1].is_free());
}

TEST(TraceTest, AcceptsAHeaderWithoutASchema) {
  EXPECT_EQ(refusal("{\"case\":\"mlp\"}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":1}\n"), "accepted");
}

TEST(TraceTest, TakesTheOperationFromNameOrAten) {
  const Trace trace = read(
      "{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"aten\":\"mm\",\"module\":\"fc\",\"tag\":\"inputs\"}"
      "\n"
      "{\"op\":\"alloc\",\"id\":2,\"bytes\":1,\"aten\":\"mm\",\"name\":\"aten.addmm\"}\n"
      "{\"op\":\"alloc\",\"id\":3,\"bytes\":1,\"aten\":\"mm\",\"module\":\"fc\",\"tag\":\"inputs\"}"
      "\n");
  EXPECT_EQ(trace.label_of(0), (Trace::Label{"mm", "fc", "inputs"}));
  EXPECT_EQ(trace.label_of(1), (Trace::Label{"aten.addmm", "", ""}));
  EXPECT_EQ(trace.label_table.size(), 2u);
}

TEST(TraceTest, ReusesTheSlotsOfFreedStorages) {
  std::string events;
  for (int id = 1; id <= 1000; ++id) {
    events += "{\"op\":\"alloc\",\"id\":" + std::to_string(id) + ",\"bytes\":8}\n";
    if (id > 2) events += "{\"op\":\"free\",\"id\":" + std::to_string(id - 2) + "}\n";
  }
  EXPECT_EQ(read(events).slots, 3u);
}

TEST(TraceTest, TakesPhasesFromPhaseEvents) {
  const Trace trace = read(
      "{\"op\":\"phase\",\"name\":\"load\",\"iteration\":0}\n"
      "{\"op\":\"alloc\",\"id\":1,\"bytes\":8,\"phase\":\"load\"}\n"
      "{\"op\":\"phase\",\"name\":\"forward\",\"iteration\":1}\n"
      "{\"op\":\"alloc\",\"id\":2,\"bytes\":8,\"phase\":\"forward\"}\n"
      "{\"op\":\"phase\",\"name\":\"forward\",\"iteration\":2}\n"
      "{\"op\":\"free\",\"id\":2,\"phase\":\"backward\"}\n");
  EXPECT_THAT(spans_of(trace), ElementsAre("load0@0", "forward1@1", "forward2@2", "backward2@2"));
}

TEST(TraceTest, CountsIterationsByForwardPhasesWhenTheFileDoesNot) {
  const Trace trace = read(
      "{\"op\":\"alloc\",\"id\":1,\"bytes\":8,\"phase\":\"init\"}\n"
      "{\"op\":\"alloc\",\"id\":2,\"bytes\":8,\"phase\":\"forward\"}\n"
      "{\"op\":\"alloc\",\"id\":3,\"bytes\":8}\n"
      "{\"op\":\"free\",\"id\":2,\"phase\":\"backward\"}\n"
      "{\"op\":\"free\",\"id\":3,\"phase\":\"step\"}\n"
      "{\"op\":\"free\",\"id\":1,\"phase\":\"forward\"}\n");
  EXPECT_THAT(spans_of(trace),
              ElementsAre("init0@0", "forward1@1", "backward1@3", "step1@4", "forward2@5"));
}

TEST(TraceTest, AssignsTheKindsOfABackwardCallToSuccessiveAllocations) {
  const std::string conv =
      R"("conv":{"kinds":["data_gradient","weight_gradient"],"input":[2,3,8,8],"weight":[4,3,3,3],)"
      R"("stride":[1,1],"padding":[1,1],"dilation":[1,1],"transposed":false,"groups":1,"channels_last":false})";
  const Trace two =
      read(R"({"op":"alloc","id":1,"bytes":8,)" + conv + "}\n" +
           R"({"op":"alloc","id":2,"bytes":8})" + "\n" + R"({"op":"free","id":1})" + "\n");
  ASSERT_EQ(two.convolutions.size(), 2u);
  EXPECT_EQ(two.convolutions[0].event, 0u);
  EXPECT_EQ(two.convolutions[0].query.kind, ConvolutionKind::kDataGradient);
  EXPECT_EQ(two.convolutions[0].query.input, (Shape{2, 3, 8, 8}));
  EXPECT_EQ(two.convolutions[1].event, 1u);
  EXPECT_EQ(two.convolutions[1].query.kind, ConvolutionKind::kWeightGradient);
  const Trace one =
      read(R"({"op":"alloc","id":1,"bytes":8,)" + conv + "}\n" + R"({"op":"free","id":1})" + "\n");
  ASSERT_EQ(one.convolutions.size(), 2u);
  EXPECT_EQ(one.convolutions[1].event, 0u);  // no second allocation: both after the first
}

TEST(HostileTraceTest, NamesTheRefusedLine) {
  const std::string good = "{\"op\":\"alloc\",\"id\":1,\"bytes\":8}\n";
  EXPECT_THAT(refused_event(good + "{\"op\":\"alloc\",\"id\":1,\"bytes\":8}\n"),
              HasSubstr("step.jsonl:3: id 1 is allocated a second time"));
  EXPECT_THAT(refused_event(good + "{\"op\":\"free\",\"id\":2}\n"), HasSubstr("never allocated"));
  EXPECT_THAT(refused_event(good + "{\"op\":\"free\",\"id\":1}\n{\"op\":\"free\",\"id\":1}"),
              HasSubstr("step.jsonl:4: id 1 is freed a second time"));
  EXPECT_THAT(
      refused_event(good + "{\"op\":\"free\",\"id\":1}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":1}"),
      HasSubstr("second time"));  // ids are never reused
}

TEST(HostileTraceTest, RefusesInvalidEvents) {
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1}"), HasSubstr("no \"bytes\""));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"bytes\":1}"), HasSubstr("no \"id\""));
  EXPECT_THAT(refused_event("{\"id\":1,\"bytes\":1}"), HasSubstr("no \"op\""));
  EXPECT_THAT(refused_event("{\"op\":\"malloc\",\"id\":1}"), HasSubstr("\"malloc\""));
  EXPECT_THAT(refused_event("{\"op\":\"phase\"}"), HasSubstr("no \"name\""));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":-1}"), HasSubstr("is -1"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":1e30}"), HasSubstr("a fraction"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":9223372036854775807}"),
              HasSubstr("2^50"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":18446744073709551615}"),
              HasSubstr("too large"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":\"1\",\"bytes\":1}"), HasSubstr("a text"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":null,\"bytes\":1}"), HasSubstr("null"));
  EXPECT_THAT(refused_event("{\"op\":[\"alloc\"],\"id\":1,\"bytes\":1}"), HasSubstr("a list"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":{}}"), HasSubstr("an object"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"bytes\":2}"),
              HasSubstr("given twice"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"stream\":-1}"),
              HasSubstr("\"stream\" is -1"));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"iteration\":4000000000}"),
              HasSubstr("\"iteration\""));
  EXPECT_THAT(refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":1"), HasSubstr("not JSON"));
  EXPECT_THAT(refused_event("[1,2]"), HasSubstr("a list"));
  EXPECT_THAT(refused_event("7"), HasSubstr("not an object"));
  EXPECT_THAT(refused_event("\"op\""), HasSubstr("not an object"));
  EXPECT_THAT(refused_event("\xff\xfe"), HasSubstr("not JSON"));
  EXPECT_THAT(refused_event(std::string(100000, '[')), HasSubstr("a list"));
  EXPECT_THAT(refused_event("{\"deep\":" + std::string(100000, '[')), HasSubstr("not JSON"));
}

TEST(HostileTraceTest, RefusesInvalidGeometries) {
  const auto with = [](const std::string& conv) {
    return refused_event("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"conv\":" + conv + "}");
  };
  EXPECT_THAT(with("{}"), HasSubstr("kinds"));
  EXPECT_THAT(with("[]"), HasSubstr("a list"));
  EXPECT_THAT(with("3"), HasSubstr("\"conv\" is a number"));
  EXPECT_THAT(with("{\"kinds\":[\"sideways\"]}"), HasSubstr("sideways"));
  EXPECT_THAT(with("{\"kinds\":[\"forward\"],\"input\":[1,2,3],\"weight\":[1,2]}"),
              HasSubstr("as many extents"));
  EXPECT_THAT(with("{\"kinds\":[\"forward\"],\"input\":[1,2,3,4,5,6,7,8,9],\"weight\":[1]}"),
              HasSubstr("at most 8"));
  EXPECT_THAT(with("{\"kinds\":[\"forward\"],\"input\":[1,-2,3],\"weight\":[1,2,3]}"),
              HasSubstr("-2"));
}

TEST(HostileTraceTest, RefusesInvalidHeaders) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("[]\n"), HasSubstr("JSON object"));
  EXPECT_THAT(refusal("{\"op\":\"alloc\",\"id\":1,\"bytes\":1}\n"), HasSubstr("is an event"));
  EXPECT_THAT(refusal("{\"schema\":\"memfathom.trace/9\"}\n"), HasSubstr("memfathom.trace/1"));
  EXPECT_NE(refusal("{\"schema\":3}\n"), "accepted");
  EXPECT_NE(refusal("{broken\n"), "accepted");
}

TEST(HostileTraceTest, RefusesATraceWithoutAllocations) {
  EXPECT_THAT(refusal("{}\n"), HasSubstr("the trace has no allocations"));
  EXPECT_THAT(refusal("{}\n{\"op\":\"phase\",\"name\":\"forward\"}\n"),
              HasSubstr("the trace has no allocations"));
}

TEST(HostileTraceTest, RefusesLongLinesAndTooManyEvents) {
  TraceLimits limits;
  limits.max_line_bytes = 100;
  limits.max_events = 3;
  const std::string start = std::string(kHeader) + "\n";
  EXPECT_THAT(refusal(start + "{\"a\":\"" + std::string(200, 'x') + "\"}", limits),
              HasSubstr("step.jsonl:2: the line has more than 100 bytes"));
  EXPECT_THAT(refusal(std::string(300, ' '), limits), HasSubstr("100 bytes"));
  std::string events;
  for (int id = 0; id < 4; ++id) {
    events += "{\"op\":\"alloc\",\"id\":" + std::to_string(id) + ",\"bytes\":1}\n";
  }
  EXPECT_THAT(refusal(start + events, limits), HasSubstr("more than 3 events"));
}

TEST(HostileTraceTest, RefusesDamagedCompression) {
  std::stringstream file;
  {
    TraceWriter writer(file, true);
    TraceEvent event = convolution_event();
    for (event.id = 1; event.id < 5000; ++event.id) writer.write(event);
  }
  const std::string whole = file.str();
  EXPECT_THAT(refusal(whole.substr(0, whole.size() / 2)), HasSubstr("damaged or cut short"));
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 4)), HasSubstr("damaged or cut short"));
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 0x55);
  EXPECT_NE(refusal(flipped), "accepted");
  EXPECT_THAT(refusal(whole + "garbage"), HasSubstr("damaged or cut short"));
  EXPECT_THAT(refusal("\x1f\x8b"), HasSubstr("damaged or cut short"));
}

TEST(HostileTraceTest, DoesNotExpandACompressionBomb) {
  // 16 MiB of blanks compress to some 16 KiB; the line's limit stops it at 1 MiB.
  std::stringstream file;
  { TraceWriter writer(file, true, "{\"x\":\"" + std::string(std::size_t{16} << 20, ' ') + "\"}"); }
  EXPECT_THAT(refusal(file.str()), HasSubstr("more than 1048576 bytes"));
}

TEST(TraceTest, NamesAFileThatCannotBeOpened) {
  try {
    load_trace("/nowhere/step.jsonl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/step.jsonl"));
  }
}

class CollectingSink final : public TraceSink {
 public:
  void write(const TraceEvent& event) override { lines.push_back(to_json_line(event)); }
  std::vector<std::string> lines;
};

TEST(TracingAllocatorTest, RecordsAllocationsAndFrees) {
  BareAllocator inner;
  CollectingSink sink;
  TracingAllocator allocator(inner, sink);
  allocator.enter_phase("forward", 1);
  allocator.set_tag("activations");
  const Allocation a = allocator.allocate(100_B);
  EXPECT_FALSE(allocator.allocate(0_B));  // leaves no trace
  allocator.set_tag("");
  const Allocation b = allocator.allocate(200_B, 2);
  allocator.free(a);
  const Allocation c = allocator.allocate(300_B);
  EXPECT_EQ(c.block, a.block);  // a block is used again, an id never
  allocator.free(b);
  EXPECT_THAT(
      sink.lines,
      ElementsAre(R"({"op":"phase","name":"forward","iteration":1})",
                  R"({"op":"alloc","id":1,"bytes":100,"phase":"forward","tag":"activations"})",
                  R"({"op":"alloc","id":2,"bytes":200,"phase":"forward","stream":2})",
                  R"({"op":"free","id":1,"phase":"forward"})",
                  R"({"op":"alloc","id":3,"bytes":300,"phase":"forward"})",
                  R"({"op":"free","id":2,"phase":"forward","stream":2})"));
  EXPECT_EQ(allocator.statistics().allocated_bytes.all.current, 512);
}

}  // namespace
}  // namespace memfathom
