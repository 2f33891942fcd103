// Control of the CUDA doubles: fault injection, leaks, and calls a real library would refuse.
//
// The doubles stand in, at link time, for the public functions of cudart, cuBLAS, cuFFT and cuDNN
// that kernels/cuda calls. Device memory has tagged addresses that the CPU cannot dereference, so
// host code that touches it faults. Everything runs at once, except copies to the host: those
// arrive when their stream is synchronised. The runtime's double may be called by several threads,
// as NVIDIA's may; handles and plans of the libraries belong to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom::doubles {

struct Machine {
  int devices = 1;
  int driver = 13000;  // the newest CUDA it runs; 0: there is none
  std::string name = "Doubled A100";
  int major = 8, minor = 0;
  std::size_t memory = std::size_t{8} << 30;
  std::size_t context = std::size_t{256} << 20;  // allocated by a process's first call
  int multiprocessors = 108;
  std::size_t cudnn = 91900;
  bool tf32 = false;  // fp32 convolutions drop the last 13 bits of their operands
};

// A fresh machine: no memory, no handles, no faults, no history.
void reset(const Machine& machine = {});
Machine machine();

// The `nth` call of `function` from now on (1 = the next one) returns `status`. A sticky fault of
// cudart poisons the context: every later call of it returns the same status.
void fail(std::string function, int nth, int status, bool sticky = false);
// Like fail(), for that call and every later one.
void fail_always(std::string function, int status);
void stop_failing();

// Elapsed times of the next event pairs, in milliseconds; 1 when the list is empty.
void set_elapsed(std::vector<float> milliseconds);

int calls_of(std::string_view function);
// Everything created and not destroyed: "cudaMalloc: 2", one line a kind.
std::vector<std::string> leaks();
// Refused calls, in order: "cublasGemmEx: lda is 3, below the 4 rows of A".
std::vector<std::string> refusals();
std::size_t bytes_in_use();  // without the context

// For the doubles themselves.

// Counts the call; the injected status, or 0.
int enter(std::string_view function);
// Records a refusal and hands back `status`.
int refuse(std::string_view function, const std::string& why, int status);
void created(std::string_view kind, const void* handle);
// As most calls of the runtime do.
void make_context();
std::size_t context_bytes();  // 0 while there is none
// False when `handle` is not alive.
bool destroyed(std::string_view kind, const void* handle);
bool alive(std::string_view kind, const void* handle);
// A unique handle.
void* new_handle();

// The host bytes behind [device, device + bytes), or null unless all of it is live device memory.
void* host_view(const void* device, std::size_t bytes);
bool is_device_address(const void* address);
// A new range of device addresses backed by host memory; null when the machine's memory is
// exhausted.
void* new_memory(std::size_t bytes);
bool delete_memory(void* device);
// Physical memory, reserved addresses and mapping (expandable segments).
void* new_physical(std::size_t bytes);  // null when the machine's memory is exhausted
bool delete_physical(const void* handle);
std::optional<std::size_t> size_of_physical(const void* handle);
void* reserve_addresses(std::size_t bytes);
bool free_addresses(void* device);
bool set_mapped(void* device, std::size_t bytes, bool mapped);

// Work that happens only when a stream is synchronised.
void defer(const void* stream, std::function<void()> work);
void complete(const void* stream);  // null: every stream

float next_elapsed();

// cudart's error state.
int last_error(bool clear);
int sticky_error();
int fail_with(int status);  // sets the last error and hands `status` back

}  // namespace memfathom::doubles
