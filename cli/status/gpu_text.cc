#include "cli/status/gpu_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/render.h"

namespace memfathom {
namespace {

std::string shown(const std::optional<Bytes>& bytes) {
  return bytes ? to_string(*bytes) : "unknown";
}

}  // namespace

std::string gpu_text(const LiveGpu& gpu, const Context& context) {
  std::string text = fmt::format(
      "{} {}: {} in all, {} used, {} reserved by the driver, {} available\n", gpu.device,
      gpu.product, to_string(gpu.total), to_string(gpu.used - gpu.reserved.value_or(Bytes{})),
      shown(gpu.reserved), to_string(gpu.total - gpu.used));
  if (!gpu.processes.empty()) {
    Table table({{"pid", Align::kRight}, {"process"}, {"memory", Align::kRight}});
    for (const GpuProcess& process : gpu.processes) {
      table.add_row({fmt::format("{}", process.pid), process.name.empty() ? "?" : process.name,
                     shown(process.used)});
    }
    text += rendered(table, context);
  }
  return text + "\n";
}

nlohmann::ordered_json gpu_json(const LiveGpu& gpu) {
  using Json = nlohmann::ordered_json;
  const auto nullable = [](const std::optional<Bytes>& bytes) {
    return bytes ? Json(bytes->count()) : Json(nullptr);
  };
  Json processes = Json::array();
  for (const GpuProcess& process : gpu.processes)
    processes.push_back(
        {{"pid", process.pid}, {"name", process.name}, {"used_bytes", nullable(process.used)}});
  return {{"name", gpu.device},
          {"product", gpu.product},
          {"gpu", gpu.gpu.empty() ? Json(nullptr) : Json(gpu.gpu)},
          {"total_bytes", gpu.total.count()},
          {"used_bytes", (gpu.used - gpu.reserved.value_or(Bytes{})).count()},
          {"reserved_bytes", nullable(gpu.reserved)},
          {"available_bytes", (gpu.total - gpu.used).count()},
          {"processes", std::move(processes)}};
}

std::vector<std::string> process_descriptions(const LiveGpu& gpu) {
  std::vector<std::string> words;
  for (const GpuProcess& process : gpu.processes)
    words.push_back(fmt::format("{} (pid {}) {}", process.name.empty() ? "?" : process.name,
                                process.pid, shown(process.used)));
  return words;
}

}  // namespace memfathom
