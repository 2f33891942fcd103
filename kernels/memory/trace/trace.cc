// read_trace: reads a stream of events into a checked, compact Trace.
#include "kernels/memory/trace/trace.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/document.h"
#include "core/error.h"
#include "kernels/memory/trace/snapshot.h"

namespace memfathom {

namespace {

class TraceBuilder {
 public:
  TraceBuilder(TraceReader& reader, const std::string& name) : reader_(reader), trace_{} {
    trace_.header = reader.header();
    const Node header = parse_json(trace_.header, name, 1);
    if (const Node* precision = header.find("precision");
        precision != nullptr && precision->is_string()) {
      dtype_ = parse_dtype(precision->as_string()).value_or(DType::kFp32);
    }
    if (const Node* guesses = header.find("guesses")) read_guesses(*guesses);
    trace_.sizes = reader.variation().sizes();
    trace_.variable = reader.variation().names();
    trace_.least = reader.variation().least();
    trace_.interpolation = reader.variation().sentence();
    for (const std::string& unchecked : reader.variation().unchecked())
      trace_.guesses.push_back({unchecked});
  }

  Trace build() {
    TraceEvent event;
    while (reader_.next(event)) {
      enter(event);
      if (event.op == TraceOp::kAlloc) allocate(event);
      if (event.op == TraceOp::kFree) release(event);
    }
    flush_kinds();
    return std::move(trace_);
  }

 private:
  static constexpr std::uint32_t kFreed = 0xffffffff;
  static constexpr std::size_t kMaxGuesses = 1000;

  void read_guesses(const Node& list) {
    if (list.items().size() > kMaxGuesses)
      list.refuse(fmt::format("it may have at most {} entries", kMaxGuesses));
    for (const Node& entry : list.items()) {
      Trace::Guess guess;
      guess.what = entry.at("what").as_string();
      if (const Node* times = entry.find("times"))
        guess.times = times->as_int(1, std::int64_t{1} << 40);
      if (const Node* bytes = entry.find("bytes"))
        guess.bytes = Bytes{bytes->as_int(0, std::int64_t{1} << 50)};
      if (const Node* vary = entry.find("vary"); vary != nullptr && reader_.variation().is_active())
        guess.bytes = Bytes{reader_.variation().value(vary->as_ints()).value_or(0)};
      trace_.guesses.push_back(std::move(guess));
    }
  }

  void enter(const TraceEvent& event) {
    const bool same_phase =
        event.phase.empty() || (!trace_.spans.empty() && event.phase == trace_.spans.back().phase);
    const int before = trace_.spans.empty() ? 0 : trace_.spans.back().iteration;
    int iteration = before;
    if (event.iteration) {
      iteration = *event.iteration;
      iterations_given_ = true;
    } else if (!iterations_given_ && !same_phase &&
               (event.phase == "forward" || event.phase == "prefill")) {
      ++iteration;
    }
    if (!trace_.spans.empty() && same_phase && iteration == before) return;
    const std::string phase =
        event.phase.empty() && !trace_.spans.empty() ? trace_.spans.back().phase : event.phase;
    trace_.spans.push_back({trace_.events.size(), phase, iteration});
  }

  void allocate(const TraceEvent& event) {
    std::uint32_t slot = trace_.slots;
    if (unused_.empty()) {
      ++trace_.slots;
    } else {
      slot = unused_.back();
      unused_.pop_back();
    }
    if (!slots_.emplace(event.id, slot).second)
      reader_.refuse(fmt::format("id {} is allocated a second time", event.id));
    if (event.convolution) {
      flush_kinds();
      call_ = *event.convolution;
    }
    if (event.pool != (trace_.pools.empty() ? 0 : trace_.pools.back().pool))
      trace_.pools.push_back({trace_.events.size(), event.pool});
    push({event.bytes.count(), slot, event.stream}, event);
    if (!call_.kinds.empty()) take_kind();
    const std::size_t at = trace_.events.size() - 1;
    if (event.fft) trace_.transforms.push_back({at, *event.fft});
    if (event.attention) trace_.attentions.push_back({at, *event.attention});
    trace_.has_recurrent_layers |= event.is_recurrent;
  }

  void release(const TraceEvent& event) {
    const auto found = slots_.find(event.id);
    if (found == slots_.end())
      reader_.refuse(fmt::format("id {} is freed but was never allocated", event.id));
    if (found->second == kFreed)
      reader_.refuse(fmt::format("id {} is freed a second time", event.id));
    flush_kinds();
    push({Trace::Event::kFree, found->second, event.stream}, event);
    unused_.push_back(std::exchange(found->second, kFreed));
  }

  void push(const Trace::Event& event, const TraceEvent& from) {
    const Trace::Label label{from.name, from.module, from.tag, from.line};
    const auto [known, added] =
        labels_.emplace(label, static_cast<std::uint32_t>(trace_.label_table.size()));
    if (added) trace_.label_table.push_back(label);
    trace_.events.push_back(event);
    trace_.labels.push_back(known->second);
  }

  // A backward call allocates and computes one gradient, then the other: its kinds belong to
  // successive allocations.
  void take_kind() {
    ConvolutionQuery query = call_.geometry;
    query.kind = call_.kinds.front();
    if (!call_.names_dtype) query.dtype = dtype_;
    call_.kinds.erase(call_.kinds.begin());
    trace_.convolutions.push_back({trace_.events.size() - 1, query});
  }
  void flush_kinds() {
    while (!call_.kinds.empty()) take_kind();
  }

  TraceReader& reader_;
  Trace trace_;
  DType dtype_ = DType::kFp32;
  bool iterations_given_ = false;
  std::unordered_map<std::int64_t, std::uint32_t> slots_;
  std::vector<std::uint32_t> unused_;
  std::map<Trace::Label, std::uint32_t> labels_;
  TraceConvolution call_;  // kinds that are not placed yet
};

}  // namespace

Trace read_trace(std::istream& input, const std::string& name, const TraceLimits& limits,
                 const TraceSizes& sizes) {
  TraceReader reader(input, name, limits, sizes);
  Trace trace = TraceBuilder(reader, name).build();
  if (trace.events.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the trace has no allocations; was its recording cut short? Record "
                            "it again",
                            name));
  }
  return trace;
}

Trace load_trace(const std::string& path, const TraceLimits& limits, const TraceSizes& sizes) {
  if (const std::optional<std::string> pickle = load_pickle(path)) {
    Trace trace = read_snapshot(*pickle, path);
    const Variation named_by_the_job(Node::map(), path, sizes);  // a snapshot says none
    for (const std::string& unchecked : named_by_the_job.unchecked())
      trace.guesses.push_back({unchecked});
    return trace;
  }
  std::ifstream file(path, std::ios::binary);
  return read_trace(file, path, limits, sizes);
}

}  // namespace memfathom
