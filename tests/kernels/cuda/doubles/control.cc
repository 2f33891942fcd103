#include "tests/kernels/cuda/doubles/control.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <set>
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
  std::vector<std::pair<const void*, std::function<void()>>> deferred;
  std::vector<std::string> refusals;
  std::vector<float> elapsed;  // the next one last
  std::uint64_t next_address = kTag;
  std::uint64_t next_handle = 0x4000;
  std::size_t in_use = 0;
  int last_error = 0;
  int sticky_error = 0;
};

State& state() {
  static State instance;
  return instance;
}

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

std::uint64_t take_addresses(std::size_t bytes) {
  const std::uint64_t address = state().next_address;
  state().next_address += (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
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
  if (bytes == 0 || bytes > state().machine.memory - state().in_use) return false;
  void* backing = map_host(bytes);
  if (backing == nullptr) return false;
  // New device memory holds anything; NaNs show who reads it before writing.
  std::memset(backing, 0xFF, bytes < kPoisoned ? bytes : kPoisoned);
  state().memory[address] = Range{bytes, backing};
  state().in_use += bytes;
  return true;
}

bool unback(std::uint64_t address) {
  const auto found = state().memory.find(address);
  if (found == state().memory.end()) return false;
  munmap(found->second.backing, found->second.size);
  state().in_use -= found->second.size;
  state().memory.erase(found);
  return true;
}

}  // namespace

void reset(const Machine& machine) {
  while (!state().memory.empty()) unback(state().memory.begin()->first);
  for (const auto& [address, range] : state().reserved) munmap(range.backing, range.size);
  // Handles and addresses go on, so that those of an earlier life are stale in the next.
  State fresh;
  fresh.machine = machine;
  fresh.next_address = state().next_address;
  fresh.next_handle = state().next_handle;
  state() = std::move(fresh);
}

const Machine& machine() { return state().machine; }

void fail(std::string function, int nth, int status, bool sticky) {
  state().faults[std::move(function)].push_back(Fault{nth, status, sticky, false});
}

void fail_always(std::string function, int status) {
  state().faults[std::move(function)].push_back(Fault{0, status, false, true});
}

void stop_failing() { state().faults.clear(); }

void set_elapsed(std::vector<float> milliseconds) {
  state().elapsed.assign(milliseconds.rbegin(), milliseconds.rend());
}

float next_elapsed() {
  if (state().elapsed.empty()) return 1;
  const float next = state().elapsed.back();
  state().elapsed.pop_back();
  return next;
}

int calls_of(std::string_view function) {
  const auto found = state().calls.find(function);
  return found == state().calls.end() ? 0 : found->second;
}

std::vector<std::string> leaks() {
  std::map<std::string, int> counts;
  for (const auto& [kind, handle] : state().alive) ++counts[kind];
  std::vector<std::string> lines;
  for (const auto& [kind, count] : counts) lines.push_back(kind + ": " + std::to_string(count));
  if (state().last_error != 0)
    lines.push_back("an error nobody asked for: " + std::to_string(state().last_error));
  return lines;
}

std::vector<std::string> refusals() { return state().refusals; }
std::size_t bytes_in_use() { return state().in_use; }

int enter(std::string_view function) {
  ++state().calls[std::string(function)];
  const auto found = state().faults.find(function);
  if (found == state().faults.end()) return 0;
  int status = 0;
  for (Fault& fault : found->second) {
    if (fault.nth < 0) continue;                     // spent
    if (fault.nth > 0 && --fault.nth > 0) continue;  // not yet
    status = fault.status;
    if (fault.sticky) state().sticky_error = fault.status;
    if (!fault.always) fault.nth = -1;
  }
  return status;
}

int refuse(std::string_view function, const std::string& why, int status) {
  state().refusals.push_back(std::string(function) + ": " + why);
  return status;
}

void created(std::string_view kind, const void* handle) {
  state().alive.emplace(std::string(kind), handle);
}
bool destroyed(std::string_view kind, const void* handle) {
  return state().alive.erase({std::string(kind), handle}) > 0;
}
bool alive(std::string_view kind, const void* handle) {
  return state().alive.contains({std::string(kind), handle});
}
void* new_handle() {
  return reinterpret_cast<void*>(kTag + (std::uint64_t{1} << 47) + (state().next_handle += 64));
}

void* host_view(const void* device, std::size_t bytes) {
  const std::uint64_t address = number(device);
  if (const auto found = covering(state().memory, address, bytes); found != state().memory.end()) {
    return static_cast<char*>(found->second.backing) + (address - found->first);
  }
  const auto found = covering(state().reserved, address, bytes);
  if (found == state().reserved.end()) return nullptr;
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

void* reserve_addresses(std::size_t bytes) {
  void* backing = map_host(bytes);
  if (backing == nullptr) return nullptr;
  const std::uint64_t address = take_addresses(bytes);
  state().reserved[address] = Reservation{bytes, backing, std::vector<bool>(bytes / kAlignment)};
  return reinterpret_cast<void*>(address);
}

bool free_addresses(void* device) {
  const auto found = state().reserved.find(number(device));
  if (found == state().reserved.end()) return false;
  for (const bool page : found->second.mapped) {
    if (page) return false;
  }
  munmap(found->second.backing, found->second.size);
  state().reserved.erase(found);
  return true;
}

bool set_mapped(void* device, std::size_t bytes, bool mapped) {
  const auto found = covering(state().reserved, number(device), bytes);
  if (found == state().reserved.end() || bytes % kAlignment != 0) return false;
  std::vector<bool>& pages = found->second.mapped;
  const std::size_t first = (number(device) - found->first) / kAlignment;
  for (std::size_t page = first; page < first + bytes / kAlignment; ++page) {
    if (pages[page] == mapped) return false;
  }
  if (mapped && bytes > state().machine.memory - state().in_use) return false;
  for (std::size_t page = first; page < first + bytes / kAlignment; ++page) pages[page] = mapped;
  state().in_use = mapped ? state().in_use + bytes : state().in_use - bytes;
  return true;
}

void defer(const void* stream, std::function<void()> work) {
  state().deferred.emplace_back(stream, std::move(work));
}

void complete(const void* stream) {
  std::vector<std::pair<const void*, std::function<void()>>> rest;
  for (auto& [owner, work] : state().deferred) {
    if (stream == nullptr || owner == stream) {
      work();
    } else {
      rest.emplace_back(owner, std::move(work));
    }
  }
  state().deferred = std::move(rest);
}

int last_error(bool clear) {
  const int error = state().sticky_error != 0 ? state().sticky_error : state().last_error;
  if (clear) state().last_error = 0;
  return error;
}

int sticky_error() { return state().sticky_error; }

int fail_with(int status) {
  state().last_error = status;
  return status;
}

}  // namespace memfathom::doubles
