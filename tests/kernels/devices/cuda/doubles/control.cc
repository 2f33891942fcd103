#include "tests/kernels/devices/cuda/doubles/control.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace memfathom::doubles {
namespace {

// Not canonical on x86-64: dereferencing it faults.
constexpr std::uint64_t kTag = 0x00DE'0000'0000'0000;
constexpr std::uint64_t kAlignment = std::uint64_t{2} << 20;
constexpr std::size_t kPoisoned = std::size_t{16} << 20;

struct Fault {
  int nth = 1;  // counts down; -1 when spent
  int status = 0;
  bool sticky = false;
  bool always = false;
};

struct Range {
  std::size_t size = 0;
  void* backing = nullptr;
};

// Address space whose pages of kAlignment get memory one by one.
struct Reservation {
  std::size_t size = 0;
  void* backing = nullptr;
  std::vector<bool> mapped;
};

struct State {
  Machine machine;
  std::map<std::string, int, std::less<>> calls;
  std::map<std::string, std::vector<Fault>, std::less<>> faults;
  std::set<std::pair<std::string, const void*>> alive;
  std::map<std::uint64_t, Range> memory;
  std::map<std::uint64_t, Reservation> reserved;
  std::map<const void*, std::size_t> physical;  // sizes of memory without an address
  std::vector<std::pair<const void*, std::function<void()>>> deferred;
  std::vector<std::string> refusals;
  std::vector<float> elapsed;  // the next one last
  std::uint64_t next_address = kTag;
  std::uint64_t next_handle = 0x4000;
  std::size_t in_use = 0;
  bool has_context = false;
  std::map<std::thread::id, int> last_errors;  // each thread has its own, as with the real runtime
  int sticky_error = 0;
};

// The state, for one thread at a time: the sampler thread also calls the runtime. A function that
// holds it may call another.
class Books {
 public:
  State* operator->() const { return &state_; }
  State& operator*() const { return state_; }

 private:
  static inline std::recursive_mutex mutex_;
  static inline State state_;
  std::lock_guard<std::recursive_mutex> lock_{mutex_};
};

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

std::uint64_t take_addresses(std::size_t bytes) {
  const Books books;
  const std::uint64_t address = books->next_address;
  books->next_address += (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
  return address;
}

void* map_host(std::size_t bytes) {
  void* backing = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return backing == MAP_FAILED ? nullptr : backing;
}

// The range of `ranges` that holds [address, address + bytes), or its end.
template <typename Map>
typename Map::iterator covering(Map& ranges, std::uint64_t address, std::size_t bytes) {
  auto found = ranges.upper_bound(address);
  if (found == ranges.begin()) return ranges.end();
  --found;
  const std::uint64_t offset = address - found->first;
  return offset <= found->second.size && bytes <= found->second.size - offset ? found
                                                                              : ranges.end();
}

bool back(std::uint64_t address, std::size_t bytes) {
  const Books books;
  if (bytes == 0 || bytes > books->machine.memory - books->in_use) return false;
  void* backing = map_host(bytes);
  if (backing == nullptr) return false;
  // New device memory is filled with NaNs to expose reads before writes.
  std::memset(backing, 0xFF, bytes < kPoisoned ? bytes : kPoisoned);
  books->memory[address] = Range{bytes, backing};
  books->in_use += bytes;
  return true;
}

bool unback(std::uint64_t address) {
  const Books books;
  const auto found = books->memory.find(address);
  if (found == books->memory.end()) return false;
  munmap(found->second.backing, found->second.size);
  books->in_use -= found->second.size;
  books->memory.erase(found);
  return true;
}

}  // namespace

void reset(const Machine& machine) {
  const Books books;
  while (!books->memory.empty()) unback(books->memory.begin()->first);
  for (const auto& [address, range] : books->reserved) munmap(range.backing, range.size);
  // Handles and addresses are not reset, so that earlier ones are stale.
  State fresh;
  fresh.machine = machine;
  fresh.next_address = books->next_address;
  fresh.next_handle = books->next_handle;
  *books = std::move(fresh);
}

Machine machine() { return Books()->machine; }

void fail(std::string function, int nth, int status, bool sticky) {
  const Books books;
  books->faults[std::move(function)].push_back(Fault{nth, status, sticky, false});
}

void fail_always(std::string function, int status) {
  const Books books;
  books->faults[std::move(function)].push_back(Fault{0, status, false, true});
}

void stop_failing() { Books()->faults.clear(); }

void set_elapsed(std::vector<float> milliseconds) {
  const Books books;
  books->elapsed.assign(milliseconds.rbegin(), milliseconds.rend());
}

float next_elapsed() {
  const Books books;
  if (books->elapsed.empty()) return 1;
  const float next = books->elapsed.back();
  books->elapsed.pop_back();
  return next;
}

int calls_of(std::string_view function) {
  const Books books;
  const auto found = books->calls.find(function);
  return found == books->calls.end() ? 0 : found->second;
}

std::vector<std::string> leaks() {
  const Books books;
  std::map<std::string, int> counts;
  for (const auto& [kind, handle] : books->alive) ++counts[kind];
  std::vector<std::string> lines;
  for (const auto& [kind, count] : counts) lines.push_back(kind + ": " + std::to_string(count));
  for (const auto& [thread, error] : books->last_errors) {
    if (error != 0) lines.push_back("an error nobody asked for: " + std::to_string(error));
  }
  return lines;
}

std::vector<std::string> refusals() { return Books()->refusals; }
std::size_t bytes_in_use() { return Books()->in_use; }

int enter(std::string_view function) {
  const Books books;
  ++books->calls[std::string(function)];
  const auto found = books->faults.find(function);
  if (found == books->faults.end()) return 0;
  int status = 0;
  for (Fault& fault : found->second) {
    if (fault.nth < 0) continue;                     // spent
    if (fault.nth > 0 && --fault.nth > 0) continue;  // not yet
    status = fault.status;
    if (fault.sticky) books->sticky_error = fault.status;
    if (!fault.always) fault.nth = -1;
  }
  return status;
}

void make_context() { Books()->has_context = true; }

std::size_t context_bytes() {
  const Books books;
  return books->has_context ? books->machine.context : 0;
}

int refuse(std::string_view function, const std::string& why, int status) {
  const Books books;
  books->refusals.push_back(std::string(function) + ": " + why);
  return status;
}

void created(std::string_view kind, const void* handle) {
  const Books books;
  books->alive.emplace(std::string(kind), handle);
}
bool destroyed(std::string_view kind, const void* handle) {
  const Books books;
  return books->alive.erase({std::string(kind), handle}) > 0;
}
bool alive(std::string_view kind, const void* handle) {
  const Books books;
  return books->alive.contains({std::string(kind), handle});
}
void* new_handle() {
  const Books books;
  return reinterpret_cast<void*>(kTag + (std::uint64_t{1} << 47) + (books->next_handle += 64));
}

void* host_view(const void* device, std::size_t bytes) {
  const Books books;
  const std::uint64_t address = number(device);
  if (const auto found = covering(books->memory, address, bytes); found != books->memory.end()) {
    return static_cast<char*>(found->second.backing) + (address - found->first);
  }
  const auto found = covering(books->reserved, address, bytes);
  if (found == books->reserved.end()) return nullptr;
  const std::uint64_t offset = address - found->first;
  for (std::uint64_t page = offset / kAlignment; page * kAlignment < offset + bytes; ++page) {
    if (!found->second.mapped[page]) return nullptr;
  }
  return static_cast<char*>(found->second.backing) + offset;
}

bool is_device_address(const void* address) { return host_view(address, 1) != nullptr; }

void* new_memory(std::size_t bytes) {
  const std::uint64_t address = take_addresses(bytes);
  return back(address, bytes) ? reinterpret_cast<void*>(address) : nullptr;
}

bool delete_memory(void* device) { return unback(number(device)); }

void* new_physical(std::size_t bytes) {
  const Books books;
  if (bytes > books->machine.memory - books->in_use) return nullptr;
  void* handle = new_handle();
  books->physical[handle] = bytes;
  return handle;
}

bool delete_physical(const void* handle) { return Books()->physical.erase(handle) > 0; }

std::optional<std::size_t> size_of_physical(const void* handle) {
  const Books books;
  const auto found = books->physical.find(handle);
  return found == books->physical.end() ? std::nullopt : std::optional(found->second);
}

void* reserve_addresses(std::size_t bytes) {
  const Books books;
  void* backing = map_host(bytes);
  if (backing == nullptr) return nullptr;
  const std::uint64_t address = take_addresses(bytes);
  books->reserved[address] = Reservation{bytes, backing, std::vector<bool>(bytes / kAlignment)};
  return reinterpret_cast<void*>(address);
}

bool free_addresses(void* device) {
  const Books books;
  const auto found = books->reserved.find(number(device));
  if (found == books->reserved.end()) return false;
  for (const bool page : found->second.mapped) {
    if (page) return false;
  }
  munmap(found->second.backing, found->second.size);
  books->reserved.erase(found);
  return true;
}

bool set_mapped(void* device, std::size_t bytes, bool mapped) {
  const Books books;
  const auto found = covering(books->reserved, number(device), bytes);
  if (found == books->reserved.end() || bytes % kAlignment != 0) return false;
  std::vector<bool>& pages = found->second.mapped;
  const std::size_t first = (number(device) - found->first) / kAlignment;
  for (std::size_t page = first; page < first + bytes / kAlignment; ++page) {
    if (pages[page] == mapped) return false;
  }
  if (mapped && bytes > books->machine.memory - books->in_use) return false;
  for (std::size_t page = first; page < first + bytes / kAlignment; ++page) pages[page] = mapped;
  books->in_use = mapped ? books->in_use + bytes : books->in_use - bytes;
  return true;
}

void defer(const void* stream, std::function<void()> work) {
  const Books books;
  books->deferred.emplace_back(stream, std::move(work));
}

void complete(const void* stream) {
  const Books books;
  std::vector<std::pair<const void*, std::function<void()>>> rest;
  for (auto& [owner, work] : books->deferred) {
    if (stream == nullptr || owner == stream) {
      work();
    } else {
      rest.emplace_back(owner, std::move(work));
    }
  }
  books->deferred = std::move(rest);
}

int last_error(bool clear) {
  const Books books;
  int& own = books->last_errors[std::this_thread::get_id()];
  const int error = books->sticky_error != 0 ? books->sticky_error : own;
  if (clear) own = 0;
  return error;
}

int sticky_error() { return Books()->sticky_error; }

int fail_with(int status) {
  Books()->last_errors[std::this_thread::get_id()] = status;
  return status;
}

}  // namespace memfathom::doubles
