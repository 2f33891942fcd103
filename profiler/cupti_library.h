// CuptiLibrary: the libcupti functions we call, with the types from its headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace memfathom {

struct CuptiLibrary {
  // The statuses that callers handle.
  static constexpr int kSuccess = 0;
  static constexpr int kMaxLimitReached = 12;  // no more records in a buffer

  static constexpr int kMemoryKind = 49;  // CUPTI_ACTIVITY_KIND_MEMORY2
  static constexpr std::uint32_t kAllocation = 1;
  static constexpr std::uint32_t kRelease = 2;
  static constexpr std::uint32_t kForcedFlush = 1;
  static constexpr std::size_t kBufferAlignment = 8;
  static constexpr std::uint32_t kFirstWithSource = 24;  // the version of CUDA 12.6

  // CUpti_ActivityMemory3 up to CUDA 12.5, whose last member is `pool`, and CUpti_ActivityMemory4
  // from 12.6 on. The headers of 11.8, 12.2, 12.4 to 12.9, 13.0, 13.2 and 13.4 agree on this
  // layout; a test compares it with the installed one.
  struct MemoryRecord {
    std::uint32_t kind;
    std::uint32_t operation;
    std::uint32_t memory_kind;
    std::uint32_t correlation;
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t timestamp;  // ns
    std::uint64_t program_counter;
    std::uint32_t process;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
    const char* name;
    std::uint32_t is_async;
    std::uint32_t padding;
    std::uint64_t pool[5];
    const char* source;  // the shared object that asked; only if `allocation_source` was called
  };

  using RequestBuffer = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
  using CompleteBuffer = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                  std::size_t size, std::size_t valid);

  int (*version)(std::uint32_t*) = nullptr;
  int (*result_string)(int, const char**) = nullptr;
  int (*register_callbacks)(RequestBuffer, CompleteBuffer) = nullptr;
  int (*enable)(int kind) = nullptr;
  int (*disable)(int kind) = nullptr;
  int (*flush_all)(std::uint32_t flag) = nullptr;
  int (*next_record)(std::uint8_t* buffer, std::size_t valid, void** record) = nullptr;
  int (*dropped)(void* context, std::uint32_t stream, std::size_t* count) = nullptr;
  int (*timestamp)(std::uint64_t*) = nullptr;
  int (*allocation_source)(std::uint8_t enable) = nullptr;  // optional: from CUDA 12.6 on

  // Opens $MEMFATHOM_CUPTI, else the libcupti of CUDA 13 or 12 on the loader's path or in the
  // toolkit. False, with `why`, if there is none, a function is missing, or its records may have
  // another layout.
  bool open(std::string* why);
  // "CUPTI cannot WHAT: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES".
  std::string sentence(const std::string& what, int status) const;
};

}  // namespace memfathom
