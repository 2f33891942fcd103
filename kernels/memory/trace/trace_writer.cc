// TraceWriter: events as lines of JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "core/error.h"
#include "kernels/memory/trace/gzip.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::int64_t> list(const Shape& shape) { return {shape.begin(), shape.end()}; }

Json json_of(const FftQuery& query) {
  return {{"kind", to_string(query.kind)},
          {"extents", list(query.extents)},
          {"batch", query.batch},
          {"dtype", to_string(query.dtype)}};
}

Json json_of(const TraceAttention& call) {
  return {{"kernel", call.is_flash ? "flash" : "efficient"},
          {"backward", call.query.backward},
          {"causal", call.query.causal},
          {"dtype", to_string(call.query.dtype)},
          {"q", list(call.query.q)},
          {"k", list(call.query.k)}};
}

Json json_of(const TraceConvolution& convolution) {
  Json kinds = Json::array();
  for (const ConvolutionKind kind : convolution.kinds) kinds.push_back(to_string(kind));
  const ConvolutionQuery& query = convolution.geometry;
  Json json{{"kinds", std::move(kinds)},           {"input", list(query.input)},
            {"weight", list(query.weight)},        {"stride", list(query.stride)},
            {"padding", list(query.padding)},      {"dilation", list(query.dilation)},
            {"transposed", query.transposed},      {"groups", query.groups},
            {"channels_last", query.channels_last}};
  if (convolution.names_dtype) json["dtype"] = to_string(query.dtype);
  if (query.output_padding.rank() > 0) json["output_padding"] = list(query.output_padding);
  return json;
}

}  // namespace

std::string to_json_line(const TraceEvent& event) {
  Json json;
  if (event.op == TraceOp::kPhase) {
    json = {{"op", "phase"}, {"name", event.phase}};
  } else {
    json = {{"op", event.op == TraceOp::kAlloc ? "alloc" : "free"}, {"id", event.id}};
    if (event.op == TraceOp::kAlloc) json["bytes"] = event.bytes.count();
    if (!event.phase.empty()) json["phase"] = event.phase;
    if (!event.name.empty()) json["name"] = event.name;
    if (!event.module.empty()) json["module"] = event.module;
    if (!event.tag.empty()) json["tag"] = event.tag;
    if (!event.line.empty()) json["line"] = event.line;
    if (event.stream != 0) json["stream"] = event.stream;
    if (event.pool != 0) json["pool"] = event.pool;
    if (event.convolution) json["conv"] = json_of(*event.convolution);
    if (event.fft) json["fft"] = json_of(*event.fft);
    if (event.attention) json["attention"] = json_of(*event.attention);
    if (event.is_recurrent) json["rnn"] = Json::object();
  }
  if (event.iteration) json["iteration"] = *event.iteration;
  return dump(json);
}

TraceWriter::TraceWriter(std::ostream& output, bool gzip, std::string_view header)
    : output_(output) {
  const Json given = Json::parse(header, nullptr, false);
  if (!given.is_object())
    throw Error(ErrorKind::kInternal, "a trace's header must be a JSON object");
  Json line{{"schema", "memfathom.trace/1"}};
  for (const auto& [key, value] : given.items()) line[key] = value;
  line["schema"] = "memfathom.trace/1";
  if (gzip) gzip_ = std::make_unique<GzipWriter>(output);
  put(dump(line));
}

TraceWriter::~TraceWriter() {
  try {
    finish();
  } catch (const Error&) {  // callers that need errors call finish()
  }
}

void TraceWriter::write(const TraceEvent& event) { put(to_json_line(event)); }

void TraceWriter::finish() {
  if (finished_) return;
  finished_ = true;
  if (gzip_) gzip_->finish();
  output_.flush();
  if (!output_)
    throw Error(ErrorKind::kEnvironment, "the trace could not be written; is the disk full?");
}

void TraceWriter::put(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  if (gzip_) {
    gzip_->write(line);
  } else {
    output_ << line;
  }
}

}  // namespace memfathom
