#include "profiler/driver_activity.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "profiler/cupti_library.h"

namespace memfathom {

class DriverActivity::Recorder {
 public:
  explicit Recorder(int device) : device_(static_cast<std::uint32_t>(device)) {
    current_ = this;
    if (!library_.open(&records_.missing)) return;
    library_.version(&records_.version);
    // The callbacks come first: what is recorded before is lost. Without sources, records have no
    // module.
    expect(library_.register_callbacks(request, complete), "register its callbacks");
    expect(library_.enable(CuptiLibrary::kMemoryKind), "record memory operations");
    if (records_.missing.empty() && records_.version >= CuptiLibrary::kFirstWithSource &&
        library_.allocation_source != nullptr)
      has_source_ = library_.allocation_source(1) == CuptiLibrary::kSuccess;
  }
  ~Recorder() { current_ = nullptr; }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void mark() {
    if (!records_.missing.empty()) return;
    std::uint64_t now = 0;
    expect(library_.timestamp(&now), "tell the time");
    records_.marks.push_back(now);
  }

  DriverRecords finish() {
    if (records_.missing.empty()) {
      // Disabled first: what is allocated from now on is not wanted.
      expect(library_.disable(CuptiLibrary::kMemoryKind), "stop recording");
      expect(library_.flush_all(CuptiLibrary::kForcedFlush), "deliver its records");
    }
    const std::lock_guard lock(mutex_);
    count_dropped(nullptr, 0);  // there may have been no buffer to complete
    std::stable_sort(
        records_.records.begin(), records_.records.end(),
        [](const DriverRecord& a, const DriverRecord& b) { return a.nanoseconds < b.nanoseconds; });
    if (!records_.missing.empty()) records_.records.clear();
    current_ = nullptr;
    return std::move(records_);
  }

 private:
  static constexpr std::size_t kBufferSize = 1 << 20;
  static constexpr std::size_t kMaxRecords = 200'000;  // the rest count as dropped

  void expect(int status, const char* what) {
    if (status != CuptiLibrary::kSuccess && records_.missing.empty())
      records_.missing = library_.sentence(what, status);
  }

  static void request(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
    *buffer =
        static_cast<std::uint8_t*>(std::aligned_alloc(CuptiLibrary::kBufferAlignment, kBufferSize));
    *size = *buffer != nullptr ? kBufferSize : 0;  // CUPTI counts what it must drop then
    *records = 0;                                  // as many as fit
  }

  // From any thread, also within a call of finish().
  static void complete(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                       std::size_t valid) {
    if (Recorder* self = current_) self->read(context, stream, buffer, valid);
    std::free(buffer);
  }

  void read(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid) {
    const std::lock_guard lock(mutex_);
    void* record = nullptr;
    int status =
        valid > 0 ? library_.next_record(buffer, valid, &record) : CuptiLibrary::kMaxLimitReached;
    for (; status == CuptiLibrary::kSuccess; status = library_.next_record(buffer, valid, &record))
      take(record);
    if (status != CuptiLibrary::kMaxLimitReached) ++records_.dropped;  // the rest is not readable
    count_dropped(context, stream);
  }

  void count_dropped(void* context, std::uint32_t stream) {
    std::size_t count = 0;
    if (library_.dropped != nullptr &&
        library_.dropped(context, stream, &count) == CuptiLibrary::kSuccess)
      records_.dropped += static_cast<std::int64_t>(count);
  }

  void take(const void* record) {
    const auto& memory = *static_cast<const CuptiLibrary::MemoryRecord*>(record);
    if (memory.kind != CuptiLibrary::kMemoryKind || memory.device != device_ ||
        (memory.operation != CuptiLibrary::kAllocation &&
         memory.operation != CuptiLibrary::kRelease))
      return;
    if (records_.records.size() == kMaxRecords) {
      ++records_.dropped;
      return;
    }
    DriverRecord taken;
    taken.nanoseconds = memory.timestamp;
    taken.allocates = memory.operation == CuptiLibrary::kAllocation;
    if (memory.is_async != 0) {
      taken.memory = DriverMemory::kPool;
    } else if (memory.memory_kind <= static_cast<std::uint32_t>(DriverMemory::kManagedStatic)) {
      taken.memory = static_cast<DriverMemory>(memory.memory_kind);
    }
    taken.module = has_source_ ? module_of(memory.source) : -1;
    taken.address = memory.address;
    taken.bytes = Bytes{static_cast<std::int64_t>(memory.bytes)};
    records_.records.push_back(taken);
  }

  int module_of(const char* source) {
    if (source == nullptr) return -1;
    auto& modules = records_.modules;
    const auto at = std::find(modules.begin(), modules.end(), source);
    if (at == modules.end()) {
      modules.emplace_back(source);
      return static_cast<int>(modules.size()) - 1;
    }
    return static_cast<int>(at - modules.begin());
  }

  static inline std::atomic<Recorder*> current_ = nullptr;

  std::uint32_t device_;
  CuptiLibrary library_;
  bool has_source_ = false;
  std::mutex mutex_;
  DriverRecords records_;
};

DriverActivity::DriverActivity(int device) : recorder_(std::make_unique<Recorder>(device)) {}
DriverActivity::~DriverActivity() = default;
void DriverActivity::mark() { recorder_->mark(); }
DriverRecords DriverActivity::finish() { return recorder_->finish(); }

}  // namespace memfathom
