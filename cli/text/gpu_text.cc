#include "cli/text/gpu_text.h"

#include <fmt/format.h>

#include "cli/language/language.h"
#include "cli/render.h"

namespace memfathom {
namespace {

std::string shown(const std::optional<Bytes>& bytes) {
  return bytes ? to_string(*bytes) : "unknown";
}

}  // namespace

std::string gpu_text(const LiveGpu& gpu, const Context& context) {
  std::string text =
      translated(context.language,
                 "{} {}: {} in all, {} used, {} reserved by the driver, {} available",
                 {gpu.device, gpu.product, to_string(gpu.total),
                  to_string(gpu.used - gpu.reserved.value_or(Bytes{})), shown(gpu.reserved),
                  to_string(gpu.total - gpu.used)}) +
      "\n";
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

}  // namespace memfathom
