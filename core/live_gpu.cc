#include "core/live_gpu.h"

#include <fmt/format.h>

namespace memfathom {

std::string LiveGpu::sentence() const {
  std::string users;
  for (const GpuProcess& process : processes) {
    users += fmt::format("{}{} {}{}", users.empty() ? "" : ", ",
                         process.name.empty() ? "process" : process.name, process.pid,
                         process.used ? ": " + to_string(*process.used) : "");
  }
  return fmt::format("the target is {}, {}: {} of {} are in use{}", device, product,
                     to_string(used), to_string(total), users.empty() ? "" : " (" + users + ")");
}

std::vector<std::string> process_descriptions(const LiveGpu& gpu) {
  std::vector<std::string> descriptions;
  for (const GpuProcess& process : gpu.processes)
    descriptions.push_back(fmt::format("{} (pid {}) {}", process.name.empty() ? "?" : process.name,
                                       process.pid,
                                       process.used ? to_string(*process.used) : "unknown"));
  return descriptions;
}

}  // namespace memfathom
