// TraceReader: parses one line of untrusted JSON into one event.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/document.h"
#include "core/error.h"
#include "core/newer_schema.h"
#include "kernels/memory/trace/gzip.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

namespace {

constexpr std::string_view kSchema = "memfathom.trace/1";
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

enum class Field : std::uint8_t {
  kOp,
  kId,
  kBytes,
  kPhase,
  kName,
  kAten,
  kModule,
  kTag,
  kStream,
  kPool,
  kIteration,
  kConv,
  kFft,
  kAttention,
  kRnn,
  kLine,
  kVary,
};

}  // namespace

template <>
inline constexpr auto kEnumNames<Field> =
    std::to_array<EnumName<Field>>({{Field::kOp, "op"},
                                    {Field::kId, "id"},
                                    {Field::kBytes, "bytes"},
                                    {Field::kPhase, "phase"},
                                    {Field::kName, "name"},
                                    {Field::kAten, "aten"},
                                    {Field::kModule, "module"},
                                    {Field::kTag, "tag"},
                                    {Field::kStream, "stream"},
                                    {Field::kPool, "pool"},
                                    {Field::kIteration, "iteration"},
                                    {Field::kConv, "conv"},
                                    {Field::kFft, "fft"},
                                    {Field::kAttention, "attention"},
                                    {Field::kRnn, "rnn"},
                                    {Field::kLine, "line"},
                                    {Field::kVary, "vary"}});

// Library calls are objects; the other fields are texts and numbers.
constexpr bool is_call(Field field) {
  return field == Field::kConv || field == Field::kFft || field == Field::kAttention ||
         field == Field::kRnn || field == Field::kVary;
}

namespace {

// The parsed fields of a line: flat like the events, without building a tree.
class EventHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::string problem;
  std::array<bool, kEnumNames<Field>.size()> seen{};
  std::string op;
  std::int64_t id = 0;
  std::int64_t bytes = 0;
  std::int64_t stream = 0;
  std::int64_t pool = 0;
  std::int64_t iteration = 0;
  std::string phase;
  std::string name;
  std::string aten;
  std::string module;
  std::string tag;
  std::string line;

  bool has(Field field) const { return seen[static_cast<std::size_t>(field)]; }

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a truth value"); }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())
               ? scalar("a number that is too large")
               : integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t, const string_t&) override { return scalar("a fraction"); }
  bool string(string_t& value) override {
    if (depth_ != 1) return depth_ > 1 || fail("it is a text, not an object");
    std::string* const target = text_target();
    if (target == nullptr) return scalar("a text");
    *target = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return scalar("binary data"); }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && field_ && !is_call(*field_)) return scalar("an object");
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return fail("it is a list, not an object");
    if (depth_ == 1 && field_) return scalar("a list");
    ++depth_;
    return true;
  }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& value) override {
    if (depth_ != 1) return true;
    field_ = enum_from_name<Field>(value);
    if (!field_) return true;
    if (has(*field_)) return fail(fmt::format("\"{}\" is given twice", value));
    seen[static_cast<std::size_t>(*field_)] = true;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return fail(fmt::format("it is not JSON (at byte {})", position));
  }

 private:
  bool fail(std::string what) {
    if (problem.empty()) problem = std::move(what);
    return false;
  }
  // A value whose type does not match its key.
  bool scalar(std::string_view what) {
    if (depth_ == 0) return fail(fmt::format("it is {}, not an object", what));
    if (depth_ > 1 || !field_) return true;
    return fail(fmt::format("\"{}\" is {}", enum_name(*field_), what));
  }
  bool integer(std::int64_t value) {
    if (depth_ == 1) {
      if (std::int64_t* const target = integer_target()) {
        *target = value;
        return true;
      }
    }
    return scalar("a number");
  }
  std::int64_t* integer_target() {
    if (!field_) return nullptr;
    switch (*field_) {
      case Field::kId: return &id;
      case Field::kBytes: return &bytes;
      case Field::kStream: return &stream;
      case Field::kPool: return &pool;
      case Field::kIteration: return &iteration;
      case Field::kOp:
      case Field::kPhase:
      case Field::kName:
      case Field::kAten:
      case Field::kModule:
      case Field::kTag:
      case Field::kConv:
      case Field::kFft:
      case Field::kAttention:
      case Field::kRnn:
      case Field::kVary:
      case Field::kLine: break;
    }
    return nullptr;
  }
  std::string* text_target() {
    if (!field_) return nullptr;
    switch (*field_) {
      case Field::kOp: return &op;
      case Field::kPhase: return &phase;
      case Field::kName: return &name;
      case Field::kAten: return &aten;
      case Field::kModule: return &module;
      case Field::kTag: return &tag;
      case Field::kLine: return &line;
      case Field::kId:
      case Field::kBytes:
      case Field::kPool:
      case Field::kStream:
      case Field::kIteration:
      case Field::kConv:
      case Field::kFft:
      case Field::kAttention:
      case Field::kVary:
      case Field::kRnn: break;
    }
    return nullptr;
  }

  int depth_ = 0;
  std::optional<Field> field_;  // of the key last read; none: one that is not ours
};

Shape extents(const Node& conv, std::string_view key) {
  const Node* node = conv.find(key);
  if (node == nullptr) return {};
  const std::vector<std::int64_t> values = node->as_ints(0, std::int64_t{1} << 40);
  if (values.size() > static_cast<std::size_t>(Shape::kMaxRank)) {
    node->refuse(fmt::format("it may have at most {} extents", Shape::kMaxRank));
  }
  return Shape(values);
}

DType dtype_of(const Node& node) {
  const std::optional<DType> dtype = parse_dtype(node.as_string());
  if (!dtype) node.refuse(fmt::format("\"{}\" is not a type", node.as_string()));
  return *dtype;
}

FftQuery fft_of(const Node& fft) {
  FftQuery query;
  query.kind = fft.at("kind").as_enum<FftKind>();
  query.extents = extents(fft, "extents");
  if (query.extents.rank() < 1 || query.extents.rank() > 3)
    fft.at("extents").refuse("it must have one to three extents");
  for (const std::int64_t extent : query.extents) {
    if (extent < 1) fft.at("extents").refuse("an extent must be at least 1");
  }
  if (const Node* batch = fft.find("batch")) query.batch = batch->as_int(1, std::int64_t{1} << 40);
  if (const Node* dtype = fft.find("dtype")) query.dtype = dtype_of(*dtype);
  return query;
}

TraceAttention attention_of(const Node& attention) {
  TraceAttention call;
  const std::string& kernel = attention.at("kernel").as_string();
  if (kernel != "flash" && kernel != "efficient")
    attention.at("kernel").refuse("it must be flash or efficient");
  call.is_flash = kernel == "flash";
  if (const Node* backward = attention.find("backward")) call.query.backward = backward->as_bool();
  if (const Node* causal = attention.find("causal")) call.query.causal = causal->as_bool();
  if (const Node* dtype = attention.find("dtype")) call.query.dtype = dtype_of(*dtype);
  call.query.q = extents(attention, "q");
  call.query.k = extents(attention, "k");
  if (call.query.q.rank() != 4 || call.query.k.rank() != 4)
    attention.refuse("q and k must have four extents");
  return call;
}

TraceConvolution convolution_of(const Node& conv) {
  TraceConvolution result;
  for (const Node& kind : conv.at("kinds").items()) {
    result.kinds.push_back(kind.as_enum<ConvolutionKind>());
  }
  if (result.kinds.size() > 3) conv.at("kinds").refuse("it may name each kind once");
  ConvolutionQuery& query = result.geometry;
  query.input = extents(conv, "input");
  query.weight = extents(conv, "weight");
  if (query.input.rank() < 3) conv.at("input").refuse("it must have at least three extents");
  if (query.weight.rank() != query.input.rank())
    conv.at("weight").refuse("it must have as many extents as the input");
  query.stride = extents(conv, "stride");
  query.padding = extents(conv, "padding");
  query.output_padding = extents(conv, "output_padding");
  query.dilation = extents(conv, "dilation");
  if (const Node* dtype = conv.find("dtype")) {
    query.dtype = dtype_of(*dtype);
    result.names_dtype = true;
  }
  if (const Node* groups = conv.find("groups"))
    query.groups = groups->as_int(1, std::int64_t{1} << 40);
  if (const Node* transposed = conv.find("transposed")) query.transposed = transposed->as_bool();
  if (const Node* channels_last = conv.find("channels_last"))
    query.channels_last = channels_last->as_bool();
  return result;
}

}  // namespace

TraceReader::TraceReader(std::istream& input, std::string name, const TraceLimits& limits,
                         const TraceSizes& sizes)
    : name_(std::move(name)),
      limits_(limits),
      lines_(std::make_unique<LineReader>(input, limits.max_line_bytes)) {
  switch (lines_->next(header_)) {
    case LineReader::Status::kLine: break;
    case LineReader::Status::kEnd:
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the trace is empty; its first line must describe it", name_));
    case LineReader::Status::kTooLong:
      refuse(fmt::format("the line has more than {} bytes", limits_.max_line_bytes));
    case LineReader::Status::kCorrupt: refuse("the compressed data is damaged or cut short");
  }
  const Node header = parse_json(header_, name_, 1);
  if (!header.is_map()) refuse("the first line must be a JSON object that describes the trace");
  if (header.find("op") != nullptr)
    refuse("the first line is an event; it must describe the trace");
  if (const Node* schema = header.find("schema");
      schema != nullptr && schema->as_string() != kSchema) {
    if (is_newer_schema(schema->as_string(), kSchema))
      schema->refuse(
          fmt::format("a newer memfathom wrote this trace; use that version, or record it again "
                      "with this one, which reads \"{}\"",
                      kSchema));
    schema->refuse(fmt::format("it must be \"{}\"", kSchema));
  }
  variation_.emplace(header, name_, sizes);
}

TraceReader::~TraceReader() = default;

std::int64_t TraceReader::line() const { return lines_->number(); }

void TraceReader::refuse(const std::string& what) const {
  throw Error(ErrorKind::kInput, fmt::format("{}:{}: {}", name_, line(), what));
}

bool TraceReader::next(TraceEvent& event) {
  std::string text;
  do {
    switch (lines_->next(text)) {
      case LineReader::Status::kLine: break;
      case LineReader::Status::kEnd: return false;
      case LineReader::Status::kTooLong:
        refuse(fmt::format("the line has more than {} bytes", limits_.max_line_bytes));
      case LineReader::Status::kCorrupt: refuse("the compressed data is damaged or cut short");
    }
  } while (text.find_first_not_of(" \t") == std::string::npos);
  if (++events_ > limits_.max_events)
    refuse(fmt::format("the trace has more than {} events", limits_.max_events));

  EventHandler line;
  if (!nlohmann::json::sax_parse(text, &line))
    refuse(fmt::format("an event cannot be read: {}", line.problem));
  if (variation_->is_active() && line.has(Field::kVary)) {
    nlohmann::json varied = nlohmann::json::parse(text);
    if (const auto problem = variation_->apply(varied)) refuse(*problem);
    text = varied.dump();
    line.bytes = varied.value("bytes", std::int64_t{0});
  }
  event = {};
  if (line.op == "phase") {
    event.op = TraceOp::kPhase;
    if (!line.has(Field::kName)) refuse("a phase has no \"name\"");
    event.phase = std::move(line.name);
  } else {
    if (line.op == "alloc") {
      event.op = TraceOp::kAlloc;
      if (!line.has(Field::kBytes)) refuse("an alloc has no \"bytes\"");
      if (line.bytes < 0 || line.bytes > kMaxBytes) {
        refuse(fmt::format("\"bytes\" is {}; it must be from 0 to 2^50", line.bytes));
      }
      event.bytes = Bytes{line.bytes};
    } else if (line.op == "free") {
      event.op = TraceOp::kFree;
    } else if (line.has(Field::kOp)) {
      refuse(
          fmt::format("\"op\" is \"{}\"; it must be alloc, free or phase", line.op.substr(0, 40)));
    } else {
      refuse("an event has no \"op\"");
    }
    if (!line.has(Field::kId)) refuse("an event has no \"id\"");
    event.id = line.id;
    event.phase = std::move(line.phase);
    event.name = line.has(Field::kName) ? std::move(line.name) : std::move(line.aten);
    event.module = std::move(line.module);
    event.tag = std::move(line.tag);
    event.line = std::move(line.line);
  }
  if (line.stream < 0 || line.stream > kMaxInt)
    refuse(fmt::format("\"stream\" is {}", line.stream));
  event.stream = static_cast<int>(line.stream);
  if (line.pool < 0 || line.pool > kMaxInt) refuse(fmt::format("\"pool\" is {}", line.pool));
  event.pool = static_cast<int>(line.pool);
  if (line.has(Field::kIteration)) {
    if (line.iteration < 0 || line.iteration > kMaxInt)
      refuse(fmt::format("\"iteration\" is {}", line.iteration));
    event.iteration = static_cast<int>(line.iteration);
  }
  if (event.op == TraceOp::kAlloc && (line.has(Field::kConv) || line.has(Field::kFft) ||
                                      line.has(Field::kAttention) || line.has(Field::kRnn))) {
    const Node tree = parse_json(text, name_, static_cast<int>(this->line()));
    if (const Node* call = tree.find("conv")) event.convolution = convolution_of(*call);
    if (const Node* call = tree.find("fft")) event.fft = fft_of(*call);
    if (const Node* call = tree.find("attention")) event.attention = attention_of(*call);
    event.is_recurrent = line.has(Field::kRnn);
  }
  return true;
}

}  // namespace memfathom
