// The recorder against a double of libcupti that writes NVIDIA's own records.
#include "profiler/driver_activity.h"

#include <cupti_activity.h>
#include <cupti_version.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#include "profiler/cupti_library.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

#define EXPECT_SAME_PLACE(ours, theirs)                        \
  static_assert(offsetof(CuptiLibrary::MemoryRecord, ours) ==  \
                    offsetof(CUpti_ActivityMemory4, theirs) && \
                sizeof(CuptiLibrary::MemoryRecord::ours) == sizeof(CUpti_ActivityMemory4::theirs))
EXPECT_SAME_PLACE(kind, kind);
EXPECT_SAME_PLACE(operation, memoryOperationType);
EXPECT_SAME_PLACE(memory_kind, memoryKind);
EXPECT_SAME_PLACE(address, address);
EXPECT_SAME_PLACE(bytes, bytes);
EXPECT_SAME_PLACE(timestamp, timestamp);
EXPECT_SAME_PLACE(device, deviceId);
EXPECT_SAME_PLACE(is_async, isAsync);
EXPECT_SAME_PLACE(pool, memoryPoolConfig);
EXPECT_SAME_PLACE(source, source);
static_assert(sizeof(CuptiLibrary::MemoryRecord) == sizeof(CUpti_ActivityMemory4));
static_assert(CuptiLibrary::kMemoryKind == CUPTI_ACTIVITY_KIND_MEMORY2);
static_assert(CuptiLibrary::kAllocation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
static_assert(CuptiLibrary::kRelease == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
static_assert(CuptiLibrary::kForcedFlush == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
static_assert(CuptiLibrary::kMaxLimitReached == CUPTI_ERROR_MAX_LIMIT_REACHED);
static_assert(CuptiLibrary::kBufferAlignment == ACTIVITY_RECORD_ALIGNMENT);
static_assert(static_cast<int>(DriverMemory::kDevice) == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
static_assert(static_cast<int>(DriverMemory::kArray) == CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
static_assert(static_cast<int>(DriverMemory::kManaged) == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
static_assert(static_cast<int>(DriverMemory::kDeviceStatic) ==
              CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);

// Set for its lifetime; then as before.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_.emplace(before);
    setenv(name, value, 1);
  }
  ~EnvironmentVariable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class DriverActivityTest : public testing::Test {
 protected:
  static void note(int operation, std::uint64_t address, Bytes bytes,
                   const char* source = "/cuda/libcudnn.so.9",
                   int kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE) {
    static void* const library = dlopen(MEMFATHOM_FAKE_CUPTI, RTLD_NOW);
    using Note = void (*)(int, int, std::uint64_t, std::uint64_t, const char*);
    reinterpret_cast<Note>(dlsym(library, "fake_cupti_note"))(
        operation, kind, address, static_cast<std::uint64_t>(bytes.count()), source);
  }
  // Three allocations and a release, with a mark before and after them.
  static DriverRecords record_some(int device = 0) {
    DriverActivity activity(device);
    activity.mark();
    note(1, 100, 1_MiB);
    note(1, 200, 2_MiB);
    note(2, 100, 0_MiB);
    note(1, 300, 3_MiB, "/cuda/libcufft.so.12");
    activity.mark();
    return activity.finish();
  }

  EnvironmentVariable library_{"MEMFATHOM_CUPTI", MEMFATHOM_FAKE_CUPTI};
};

TEST_F(DriverActivityTest, RecordsOperationsWithTimesAndModules) {
  note(1, 50, 1_MiB);  // before the recording
  const DriverRecords records = record_some();
  EXPECT_EQ(records.missing, "");
  EXPECT_TRUE(records.complete());
  EXPECT_EQ(records.version, static_cast<std::uint32_t>(CUPTI_API_VERSION));
  ASSERT_EQ(records.records.size(), 4U);
  EXPECT_EQ(records.records[0].bytes, 1_MiB);
  EXPECT_EQ(records.records[2].allocates, false);
  EXPECT_EQ(records.records[2].address, 100U);
  EXPECT_EQ(records.modules[static_cast<std::size_t>(records.records[3].module)],
            "/cuda/libcufft.so.12");
  ASSERT_EQ(records.marks.size(), 2U);
  EXPECT_LT(records.marks[0], records.records[0].nanoseconds);
  EXPECT_GT(records.marks[1], records.records[3].nanoseconds);
  note(1, 400, 1_MiB);  // after it
  EXPECT_EQ(record_some().records.size(), 4U);
}

TEST_F(DriverActivityTest, ReadsEveryBufferAlsoOnAnotherThread) {
  const EnvironmentVariable capacity("FAKE_CUPTI_CAPACITY", "1");
  EXPECT_EQ(record_some().records.size(), 4U);
  const EnvironmentVariable thread("FAKE_CUPTI_THREAD", "1");
  EXPECT_EQ(record_some().records.size(), 4U);
}

TEST_F(DriverActivityTest, RecordsOfOlderVersionsHaveNoModule) {
  const EnvironmentVariable version("FAKE_CUPTI_VERSION", "23");
  const DriverRecords records = record_some();
  ASSERT_EQ(records.records.size(), 4U);
  EXPECT_EQ(records.records[3].bytes, 3_MiB);
  EXPECT_EQ(records.records[3].module, -1);
}

TEST_F(DriverActivityTest, StreamOrderedMemoryIsThatOfAPool) {
  DriverActivity activity(0);
  note(1, 100, 1_MiB, nullptr, 0x100 | CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  note(1, 200, 1_MiB, nullptr, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
  const DriverRecords records = activity.finish();
  ASSERT_EQ(records.records.size(), 2U);
  EXPECT_EQ(records.records[0].memory, DriverMemory::kPool);
  EXPECT_EQ(records.records[1].memory, DriverMemory::kArray);
  EXPECT_EQ(records.records[1].module, -1);
}

TEST_F(DriverActivityTest, OtherGpusAreNotRecorded) {
  EXPECT_TRUE(record_some(/*device=*/1).records.empty());
}

TEST_F(DriverActivityTest, UnknownVersionsAreNotRead) {
  for (const char* version : {"17", "29", "140000"}) {
    const EnvironmentVariable other("FAKE_CUPTI_VERSION", version);
    const DriverRecords records = record_some();
    EXPECT_THAT(records.missing, HasSubstr(std::string("CUPTI has version ") + version));
    EXPECT_TRUE(records.records.empty());
    EXPECT_FALSE(records.complete());
  }
}

TEST_F(DriverActivityTest, SaysWhyCuptiRefuses) {
  const EnvironmentVariable refused("FAKE_CUPTI_REFUSES", "35");
  EXPECT_EQ(record_some().missing,
            "CUPTI cannot record memory operations: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
  const EnvironmentVariable unnamed("FAKE_CUPTI_REFUSES", "33");
  EXPECT_EQ(record_some().missing, "CUPTI cannot record memory operations: an unknown error");
}

TEST_F(DriverActivityTest, DroppedAndIncompleteRecordsAreCounted) {
  {
    const EnvironmentVariable drops("FAKE_CUPTI_DROPS", "5");
    const DriverRecords records = record_some();
    EXPECT_EQ(records.dropped, 5);
    EXPECT_FALSE(records.complete());
  }
  const EnvironmentVariable invalid("FAKE_CUPTI_INVALID", "1");
  const DriverRecords records = record_some();
  EXPECT_EQ(records.records.size(), 3U);
  EXPECT_EQ(records.dropped, 1);
}

TEST_F(DriverActivityTest, AMissingLibraryOrDriverIsNoError) {
  const EnvironmentVariable nowhere("MEMFATHOM_CUPTI", "/nowhere/libcupti.so");
  EXPECT_THAT(record_some().missing, HasSubstr("libcupti) is not installed"));
  const EnvironmentVariable another("MEMFATHOM_CUPTI", MEMFATHOM_FAKE_NVML);
  EXPECT_THAT(record_some().missing, HasSubstr("lacks a function"));
}

}  // namespace
}  // namespace memfathom
