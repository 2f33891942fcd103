#include "kernels/memory/trace/snapshot_writer.h"

#include <charconv>
#include <cstdint>
#include <ostream>
#include <string_view>

#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/allocator/snapshot.h"

namespace memfathom {
namespace {

// The opcodes of a pickle that lists, dicts, texts and integers take.
class PickleWriter {
 public:
  explicit PickleWriter(std::ostream& output) : output_(output) { output_ << "\x80\x02"; }

  void begin_dict() { output_ << "}("; }
  void end_dict() { output_ << 'u'; }
  void begin_list() { output_ << "]("; }
  void end_list() { output_ << 'e'; }
  void finish() { output_ << '.'; }

  void text(std::string_view value) {
    output_ << 'X';
    little_endian(value.size(), sizeof(std::uint32_t));
    output_ << value;
  }
  void integer(std::int64_t value) {
    output_ << '\x8a' << static_cast<char>(sizeof(value));
    little_endian(static_cast<std::uint64_t>(value), sizeof(value));
  }
  void pair(std::int64_t first, std::int64_t second) {
    integer(first);
    integer(second);
    output_ << '\x86';  // TUPLE2
  }
  void boolean(bool value) { output_ << (value ? '\x88' : '\x89'); }

  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }
  void entry(std::string_view key, std::int64_t value) {
    text(key);
    integer(value);
  }

 private:
  void little_endian(std::uint64_t value, std::size_t bytes) {
    constexpr unsigned kBits = 8;
    for (std::size_t i = 0; i < bytes; ++i)
      output_ << static_cast<char>((value >> (kBits * i)) & 0xffU);
  }

  std::ostream& output_;
};

class SnapshotWriter final : private SegmentSource {
 public:
  SnapshotWriter(const Trace& trace, std::ostream& output) : trace_(trace), pickle_(output) {}

  void write() {
    CachingAllocator allocator(*this);
    pickle_.begin_dict();
    pickle_.text("device_traces");
    pickle_.begin_list();
    pickle_.begin_list();
    write_history(allocator);
    pickle_.end_list();
    pickle_.end_list();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const SegmentSnapshot& segment : allocator.snapshot().segments) write_segment(segment);
    pickle_.end_list();
    pickle_.end_dict();
    pickle_.finish();
    is_open_ = false;  // the allocator releases its segments after the file is complete
  }

 private:
  // Segments are taken and given back in the midst of the allocation that causes it.
  std::optional<std::uint64_t> allocate(Bytes size, int stream) override {
    const std::optional<std::uint64_t> address = segments_.allocate(size, stream);
    if (address) write_event("segment_alloc", *address, size, stream);
    return address;
  }
  void release(std::uint64_t address, Bytes size) override {
    segments_.release(address, size);
    if (is_open_) write_event("segment_free", address, size, 0);
  }
  std::optional<Bytes> capacity() const override { return std::nullopt; }

  void write_history(CachingAllocator& allocator) {
    std::vector<Allocation> live(trace_.slots);
    std::vector<Bytes> sizes(trace_.slots);
    for (event_ = 0; event_ < trace_.events.size(); ++event_) {
      const Trace::Event& event = trace_.events[event_];
      if (event.is_free()) {
        allocator.free(live[event.slot]);
        const std::uint64_t address = live[event.slot].address;
        write_event("free_requested", address, sizes[event.slot], event.stream);
        write_event("free_completed", address, sizes[event.slot], event.stream);
        continue;
      }
      sizes[event.slot] = Bytes{event.bytes};
      if (next_pool_ < trace_.pools.size() && trace_.pools[next_pool_].first_event <= event_) {
        pool_ = trace_.pools[next_pool_++].pool;
        allocator.use_private_pool(pool_);
      }
      live[event.slot] = allocator.allocate(sizes[event.slot], event.stream);
      write_event("alloc", live[event.slot].address, sizes[event.slot], event.stream);
    }
  }

  void write_event(std::string_view action, std::uint64_t address, Bytes size, int stream) {
    pickle_.begin_dict();
    pickle_.entry("action", action);
    pickle_.entry("addr", static_cast<std::int64_t>(address));
    pickle_.entry("size", size.count());
    pickle_.entry("stream", stream);
    if (pool_ != 0) write_pool("pool_id", pool_);
    pickle_.text("frames");
    pickle_.begin_list();
    if (event_ < trace_.events.size()) write_frames(trace_.label_of(event_));
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_pool(std::string_view key, int pool) {
    pickle_.text(key);
    pickle_.pair(0, pool);
  }

  // The innermost frame first, as PyTorch has it.
  void write_frames(const Trace::Label& label) {
    if (!label.name.empty()) write_frame(label.name, "", 0);
    if (!label.module.empty()) write_frame(label.module, "", 0);
    if (label.line.empty()) return;
    const std::string_view line = label.line;
    const std::size_t colon = line.rfind(':');
    std::int64_t number = 0;
    if (colon != std::string_view::npos)
      std::from_chars(line.data() + colon + 1, line.data() + line.size(), number);
    write_frame("", line.substr(0, colon), number);
  }

  void write_frame(std::string_view name, std::string_view file, std::int64_t line) {
    pickle_.begin_dict();
    pickle_.entry("name", name);
    pickle_.entry("filename", file);
    pickle_.entry("line", line);
    pickle_.end_dict();
  }

  void write_segment(const SegmentSnapshot& segment) {
    Bytes allocated;
    Bytes requested;
    for (const BlockSnapshot& block : segment.blocks) {
      if (block.state == BlockState::kAllocated) allocated += block.size;
      requested += block.requested;
    }
    pickle_.begin_dict();
    pickle_.entry("device", 0);
    pickle_.entry("address", static_cast<std::int64_t>(segment.address));
    pickle_.entry("total_size", segment.size.count());
    pickle_.entry("allocated_size", allocated.count());
    pickle_.entry("active_size", allocated.count());
    pickle_.entry("requested_size", requested.count());
    pickle_.entry("stream", segment.stream);
    write_pool("segment_pool_id", segment.private_pool);
    pickle_.entry("segment_type", segment.small_pool ? "small" : "large");
    pickle_.text("is_expandable");
    pickle_.boolean(segment.expandable);
    pickle_.text("frames");
    pickle_.begin_list();
    pickle_.end_list();
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const BlockSnapshot& block : segment.blocks) {
      pickle_.begin_dict();
      pickle_.entry("address", static_cast<std::int64_t>(block.address));
      pickle_.entry("size", block.size.count());
      pickle_.entry("requested_size", block.requested.count());
      pickle_.entry("state", to_string(block.state));
      pickle_.text("frames");
      pickle_.begin_list();
      pickle_.end_list();
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  const Trace& trace_;
  PickleWriter pickle_;
  ArithmeticSegments segments_;
  std::size_t event_ = 0;  // of the trace, that is replayed now
  std::size_t next_pool_ = 0;
  int pool_ = 0;
  bool is_open_ = true;
};

}  // namespace

void write_snapshot(const Trace& trace, std::ostream& output) {
  SnapshotWriter(trace, output).write();
}

}  // namespace memfathom
