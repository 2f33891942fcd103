// gpus: known GPUs and their usable memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/bytes.h"

namespace memfathom {

struct Gpu {
  std::string_view name;          // "a100-40gb"
  std::string_view product;       // "NVIDIA A100 40GB"
  std::string_view vendor;        // nvidia | amd
  std::string_view architecture;  // "sm_80", "gfx942"
  std::string_view kind;          // data centre | workstation | consumer | laptop
  std::int64_t memory_mib;        // the total that the driver's tool shows
  bool as_shown;                  // true: as the tool shows it; false: the nominal size
  int multiprocessors;            // 0: unknown

  Bytes memory() const { return Bytes{memory_mib} * (1 << 20); }
  // 80 for sm_80; 0 for other vendors.
  int compute_capability() const;
  // Threads that can be resident at once, in 1024s: the size of what a CUDA context keeps for each
  // of them. 0: unknown.
  double resident_kilothreads() const;
};

// The most threads that one multiprocessor of this capability holds (CUDA programming guide,
// "Technical Specifications per Compute Capability").
int resident_threads_per_multiprocessor(int compute_capability);

std::span<const Gpu> gpus_by_memory();  // smallest memory first

// By name, ignoring hyphens and case: "rtx-4090", "4090", "NVIDIA A100-SXM4-80GB". Of several
// ("a100") the one with the smallest memory. Null if unknown.
const Gpu* find_gpu(std::string_view name);
// Says which GPU was taken for a name that several have; empty if only one has it.
std::string ambiguous_gpu_sentence(std::string_view name);
// By the driver's name ("NVIDIA A100-SXM4-40GB") and the memory. Null if unknown.
const Gpu* find_gpu_of_driver(std::string_view product, Bytes memory);
// As find_gpu, but throws Error(kInput) with the nearest name if unknown.
const Gpu& gpu_named(std::string_view name, const std::string& where);

}  // namespace memfathom
