// The models and GPUs that can be named in a job.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     int main() {
//       for (const memfathom::Gpu& gpu : memfathom::Session().gpus())
//         std::cout << gpu.name << ' ' << to_string(gpu.memory) << '\n';
//     }
#pragma once

#include <memfathom/bytes.h>
#include <memfathom/estimate.h>

#include <cstdint>
#include <optional>
#include <string>

namespace memfathom {
inline namespace v0 {

struct Model {
  std::string name, description;
  std::int64_t parameters = 0;
};

struct Gpu {
  std::string name, product, vendor, architecture;
  Bytes memory;
  // Of a job, where one was given.
  std::optional<Bytes> device_peak, headroom;
  VerdictStatus verdict = VerdictStatus::kUnknown;
};

}  // namespace v0
}  // namespace memfathom
