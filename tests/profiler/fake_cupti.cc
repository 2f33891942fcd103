// A double of libcupti: the activity interface as cupti_activity.h documents it, fed by
// fake_cupti_note(), which the double of the CUDA runtime calls as the driver tells CUPTI.
// Environment variables choose what an installation may answer:
//
//   FAKE_CUPTI_VERSION    its API version; below 24 records end before `source`
//   FAKE_CUPTI_REFUSES    the status of cuptiActivityEnable: 35 without the right to profile, 33 on
//   a virtual GPU, 15 without a driver FAKE_CUPTI_CAPACITY   records that fit in a buffer; the rest
//   goes into further buffers FAKE_CUPTI_THREAD     buffers are completed on a thread of its own
//   FAKE_CUPTI_DROPS      records dropped for want of a buffer
//   FAKE_CUPTI_INVALID    the last record of each buffer is incomplete
//   FAKE_CUPTI_TRANSIENT  bytes that a library allocates and releases at once after each allocation
#include <cupti_activity.h>
#include <cupti_version.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

int setting(const char* name, int otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::atoi(given) : otherwise;
}

struct State {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  bool enabled = false;
  bool sources = false;
  std::uint64_t clock = 1000;
  std::size_t dropped = 0;
  std::vector<CUpti_ActivityMemory4> records;
  std::vector<std::string*> names;  // kept: records hold pointers to them
};
State& state() {
  static State one;
  return one;
}

std::size_t stride() { return setting("FAKE_CUPTI_VERSION", CUPTI_API_VERSION) < 24 ? 120 : 128; }

// As many records as fit; the rest is dropped if the client has no buffer.
void deliver(std::vector<CUpti_ActivityMemory4> records) {
  State& self = state();
  const auto limit = static_cast<std::size_t>(setting("FAKE_CUPTI_CAPACITY", 1 << 20));
  for (std::size_t at = 0; at < records.size();) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t most = 0;
    self.request(&buffer, &size, &most);
    if (buffer == nullptr ||
        reinterpret_cast<std::uintptr_t>(buffer) % ACTIVITY_RECORD_ALIGNMENT != 0) {
      const std::lock_guard lock(self.mutex);
      self.dropped += records.size() - at;
      return;
    }
    std::size_t used = 0;
    for (std::size_t n = 0; n < limit && at < records.size() && used + stride() <= size;
         ++n, ++at, used += stride())
      std::memcpy(buffer + used, &records[at], stride());
    self.complete(nullptr, 0, buffer, size, used);
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = static_cast<uint32_t>(setting("FAKE_CUPTI_VERSION", CUPTI_API_VERSION));
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"; break;
    case CUPTI_ERROR_NOT_INITIALIZED: *text = "CUPTI_ERROR_NOT_INITIALIZED"; break;
    case CUPTI_ERROR_INVALID_OPERATION: *text = "CUPTI_ERROR_INVALID_OPERATION"; break;
    default: return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                  CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  state().request = request;
  state().complete = complete;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (const int refused = setting("FAKE_CUPTI_REFUSES", 0))
    return static_cast<CUptiResult>(refused);
  if (kind != CUPTI_ACTIVITY_KIND_MEMORY2) return CUPTI_ERROR_INVALID_KIND;
  state().enabled = true;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (kind != CUPTI_ACTIVITY_KIND_MEMORY2) return CUPTI_ERROR_INVALID_KIND;
  state().enabled = false;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnableAllocationSource(uint8_t enable) {
  state().sources = enable != 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  const std::lock_guard lock(state().mutex);
  *timestamp = state().clock += 1000;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  State& self = state();
  if (self.request == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  if ((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == 0) return CUPTI_SUCCESS;  // no buffer is full
  std::vector<CUpti_ActivityMemory4> records;
  {
    const std::lock_guard lock(self.mutex);
    records.swap(self.records);
    self.dropped += static_cast<std::size_t>(setting("FAKE_CUPTI_DROPS", 0));
  }
  if (setting("FAKE_CUPTI_THREAD", 0) != 0) {
    std::thread([&] { deliver(std::move(records)); }).join();
  } else {
    deliver(std::move(records));
  }
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                              CUpti_Activity** record) {
  if (buffer == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  auto* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + stride();
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (next + stride() >= buffer + valid && setting("FAKE_CUPTI_INVALID", 0) != 0)
    return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  const std::lock_guard lock(state().mutex);
  *dropped = state().dropped;
  state().dropped = 0;  // as documented
  return CUPTI_SUCCESS;
}

namespace {

void record(int operation, int kind, std::uint64_t address, std::uint64_t bytes,
            const char* source) {
  State& self = state();
  CUpti_ActivityMemory4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  record.memoryOperationType = static_cast<CUpti_ActivityMemoryOperationType>(operation);
  record.memoryKind = static_cast<CUpti_ActivityMemoryKind>(kind & 0xff);
  record.isAsync = kind > 0xff;
  record.address = address;
  record.bytes = bytes;
  record.timestamp = ++self.clock;
  if (self.sources && source != nullptr) {
    self.names.push_back(new std::string(source));
    record.source = self.names.back()->c_str();
  }
  self.records.push_back(record);
}

}  // namespace

// An operation on the driver's memory: 1 allocates, 2 releases. 0x100 in the kind: stream-ordered,
// from a pool.
EXPORT void fake_cupti_note(int operation, int kind, std::uint64_t address, std::uint64_t bytes,
                            const char* source) {
  const std::lock_guard lock(state().mutex);
  if (!state().enabled) return;
  record(operation, kind, address, bytes, source);
  const int transient = setting("FAKE_CUPTI_TRANSIENT", 0);
  if (operation != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION || transient == 0) return;
  constexpr std::uint64_t kElsewhere = std::uint64_t{1} << 60;
  for (const int step : {CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                         CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE})
    record(step, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, kElsewhere,
           static_cast<std::uint64_t>(transient), "/cuda/lib64/libcufft.so.12");
}
