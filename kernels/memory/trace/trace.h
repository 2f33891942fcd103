// Trace: a recorded training step, event by event: JSON lines, optionally gzipped
// (docs/contract.md §5).
//
// TraceReader streams untrusted files; read_trace() checks a whole trace and stores it in the
// compact form that replay() runs; TraceWriter writes the events of TracingAllocator.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/bytes.h"
#include "core/workspace.h"
#include "kernels/memory/trace/variation.h"

namespace memfathom {

enum class TraceOp : std::uint8_t { kAlloc, kFree, kPhase };

// The convolution call whose first storage an event allocates.
struct TraceConvolution {
  std::vector<ConvolutionKind> kinds;
  ConvolutionQuery geometry;  // `kind` is not part of the trace
  bool names_dtype = false;   // false: the trace's `precision` is its type

  bool operator==(const TraceConvolution&) const = default;
};

// A fused attention call: PyTorch's own kernels, flash attention or the memory-efficient one.
struct TraceAttention {
  bool is_flash = false;
  AttentionQuery query;

  bool operator==(const TraceAttention&) const = default;
};

struct TraceEvent {
  TraceOp op = TraceOp::kAlloc;
  std::int64_t id = 0;  // of the storage; ids are never reused
  Bytes bytes;          // as requested, before any rounding
  int stream = 0;
  int pool = 0;       // the allocator's private pool, as a CUDA graph has one; 0: none
  std::string phase;  // of a phase event: its name; empty: the phase continues
  std::optional<int> iteration;
  std::string name;    // the operation
  std::string module;  // the running module
  std::string tag;     // the component it belongs to
  std::string line;    // of the script, "train.py:17"
  std::optional<TraceConvolution> convolution;
  std::optional<FftQuery> fft;
  std::optional<TraceAttention> attention;
  bool is_recurrent = false;  // cuDNN's reserve of a recurrent layer

  bool operator==(const TraceEvent&) const = default;
};

struct TraceLimits {
  std::size_t max_line_bytes = std::size_t{1} << 20;
  std::size_t max_events = 50'000'000;
};

class LineReader;

class TraceReader {
 public:
  // `name` is used in error messages. Reads the first line. Every error is Error(kInput) with name
  // and line. With `sizes` the events are those of the step at these sizes.
  TraceReader(std::istream& input, std::string name, const TraceLimits& limits = {},
              const TraceSizes& sizes = {});
  ~TraceReader();

  const std::string& header() const { return header_; }  // the first line: a JSON object
  bool next(TraceEvent& event);                          // false at the end
  std::int64_t line() const;                             // of the last event
  const Variation& variation() const { return *variation_; }

  [[noreturn]] void refuse(const std::string& what) const;  // throws with file and line

 private:
  std::string name_;
  TraceLimits limits_;
  std::unique_ptr<LineReader> lines_;
  std::string header_;
  std::optional<Variation> variation_;
  std::size_t events_ = 0;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void write(const TraceEvent& event) = 0;
};

class GzipWriter;

class TraceWriter final : public TraceSink {
 public:
  // `header` is a JSON object; "schema" is inserted before its keys.
  TraceWriter(std::ostream& output, bool gzip, std::string_view header = "{}");
  ~TraceWriter() override;  // finishes if finish() was not called, ignoring errors

  void write(const TraceEvent& event) override;
  void finish();  // throws Error(kEnvironment) if writing fails

 private:
  void put(std::string_view text);

  std::ostream& output_;
  std::unique_ptr<GzipWriter> gzip_;
  bool finished_ = false;
};

// One event as a line of JSON, without the newline.
std::string to_json_line(const TraceEvent& event);

// A checked trace in memory.
struct Trace {
  struct Event {
    std::int64_t bytes = 0;  // kFree for a free
    std::uint32_t slot = 0;  // the storage; slots of freed storages are reused
    std::int32_t stream = 0;

    static constexpr std::int64_t kFree = -1;
    bool is_free() const { return bytes == kFree; }
  };
  struct Label {
    std::string name;
    std::string module;
    std::string tag;
    std::string line;

    bool operator==(const Label&) const = default;
    // Not <=>, which strings of libc++ 13 lack.
    bool operator<(const Label& other) const {
      return std::tie(name, module, tag, line) <
             std::tie(other.name, other.module, other.tag, other.line);
    }
  };
  // Events from `first_event` to the next span. If the file has no iterations, each return to
  // `forward` (or `prefill`) starts one; earlier events are iteration 0.
  struct Span {
    std::size_t first_event = 0;
    std::string phase;
    int iteration = 0;
  };
  // Allocations from `first_event` to the next of these come from the allocator's private pool
  // `pool`; 0, as before the first of them: from the common pools.
  struct PoolUse {
    std::size_t first_event = 0;
    int pool = 0;
  };
  // A library call right after `event`: its workspace is allocated and freed there.
  struct Convolution {
    std::size_t event = 0;
    ConvolutionQuery query;
  };
  struct Fft {
    std::size_t event = 0;
    FftQuery query;
  };
  struct Attention {
    std::size_t event = 0;
    TraceAttention call;
  };
  // What the recording had to assume; `bytes` is the size that depends on it.
  struct Guess {
    std::string what;
    std::int64_t times = 1;
    Bytes bytes;
  };

  std::string header;
  std::vector<Event> events;
  std::vector<std::uint32_t> labels;  // per event, into label_table
  std::vector<Label> label_table;
  std::vector<Span> spans;
  std::vector<PoolUse> pools;
  std::vector<Convolution> convolutions;  // by event
  std::vector<Fft> transforms;            // likewise
  std::vector<Attention> attentions;      // likewise
  bool has_recurrent_layers = false;
  std::vector<Guess> guesses;
  std::uint32_t slots = 0;
  TraceSizes sizes;                   // of the step, as far as the file says them
  std::vector<std::string> variable;  // of these, those that may be asked for
  TraceSizes least;                   // from which on
  std::string interpolation;          // what to say of sizes that were not recorded

  const Label& label_of(std::size_t event) const { return label_table[labels[event]]; }
};

// Throws Error(kInput) for errors of TraceReader and for ids that are allocated twice or freed
// while not live.
Trace read_trace(std::istream& input, const std::string& name, const TraceLimits& limits = {},
                 const TraceSizes& sizes = {});
Trace load_trace(const std::string& path, const TraceLimits& limits = {},
                 const TraceSizes& sizes = {});

}  // namespace memfathom
