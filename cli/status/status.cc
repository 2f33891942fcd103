#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "cli/status/ages.h"
#include "cli/status/device_report.h"
#include "cli/status/openmetrics.h"
#include "core/json_io.h"
#include "db/store.h"

namespace memfathom {
namespace {

using nlohmann::json;

struct Match {
  Calibration calibration;
  std::string status;  // calibrated, stale
};

// The newest usable one of each framework on this device.
std::vector<Match> matches_of(const DeviceReport& device, const std::vector<Calibration>& stored) {
  std::vector<Match> matches;
  for (auto at = stored.rbegin(); at != stored.rend(); ++at) {
    if (!at->usable || at->environment.device_key() != device.environment.device_key()) continue;
    const auto same = [&](const Match& match) {
      return match.calibration.environment.framework == at->environment.framework;
    };
    if (std::any_of(matches.begin(), matches.end(), same)) continue;
    // The stack of another framework is not visible here.
    const bool current = at->environment.framework != device.environment.framework ||
                         at->environment.stack_key() == device.environment.stack_key();
    matches.push_back({*at, current ? "calibrated" : "stale"});
  }
  return matches;
}

json nullable(const std::optional<Bytes>& bytes) {
  return bytes ? json(bytes->count()) : json(nullptr);
}

json device_json(const DeviceReport& device, const std::vector<Match>& matches) {
  json processes = json::array();
  for (const GpuProcess& process : device.processes) {
    processes.push_back(
        {{"pid", process.pid}, {"name", process.name}, {"used_bytes", nullable(process.used)}});
  }
  json calibrations = json::array();
  for (const Match& match : matches) {
    calibrations.push_back({{"id", match.calibration.id},
                            {"name", match.calibration.name},
                            {"status", match.status},
                            {"created", match.calibration.created}});
  }
  return {{"name", device.name},
          {"gpu", device.environment.gpu},
          {"architecture", device.environment.architecture},
          {"environment", to_json(device.environment)},
          {"memory",
           {{"total_bytes", device.total.count()},
            {"used_bytes", nullable(device.used)},
            {"free_bytes", nullable(device.free)},
            {"reserved_bytes", nullable(device.reserved)},
            {"source", device.memory_source}}},
          {"processes", std::move(processes)},
          {"calibrations", std::move(calibrations)},
          {"problem", device.problem.empty() ? json(nullptr) : json(device.problem)}};
}

std::string shown(const std::optional<Bytes>& bytes) { return bytes ? to_string(*bytes) : "-"; }

std::string described(const Environment& e) {
  std::string text = e.architecture;
  for (const auto& [label, value] :
       {std::pair{"driver", e.driver}, std::pair{"CUDA", e.cuda}, std::pair{"products", e.cublas},
        std::pair{"convolutions", e.cudnn}, std::pair{"transforms", e.cufft},
        std::pair{"ECC", std::string(e.ecc ? "on" : "")}, std::pair{"MIG", e.mig}}) {
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", label, value);
  }
  return text;
}

// The calibration that estimates for this device lack; empty if none.
std::string calibration_hint(const DeviceReport& device, const std::vector<Match>& matches) {
  if (!device.name.starts_with("cuda")) {
    return matches.empty() && device.problem.empty()
               ? fmt::format("not calibrated; run memfathom calibrate --device {}", device.name)
               : "";
  }
  const bool knows_pytorch = std::any_of(matches.begin(), matches.end(), [](const Match& match) {
    return match.calibration.environment.framework == "pytorch";
  });
  if (knows_pytorch) return "";
  return fmt::format("{}; run memfathom calibrate --device {} --framework pytorch",
                     matches.empty() ? "not calibrated"
                                     : "estimates are for PyTorch, which is not calibrated here",
                     device.name);
}

void print_details(const DeviceReport& device, const std::vector<Match>& matches,
                   Context& context) {
  context.out << fmt::format(
      "\n{}: {}\n", device.name,
      device.problem.empty() ? described(device.environment) : device.problem);
  for (const GpuProcess& process : device.processes) {
    context.out << fmt::format("  process {} {} {}\n", process.pid,
                               process.name.empty() ? "(unknown)" : process.name,
                               shown(process.used));
  }
  for (const Match& match : matches) {
    context.out << fmt::format("  {} {} ({}, {})\n", match.status, match.calibration.name,
                               match.calibration.id.substr(0, 12), match.calibration.created);
  }
  if (const std::string missing = calibration_hint(device, matches); !missing.empty())
    context.out << "  " << missing << '\n';
}

std::string metrics_of(const MachineReport& machine, const std::vector<Calibration>& stored) {
  OpenMetrics metrics;
  metrics.family("memfathom_device_memory_bytes",
                 "Memory of a device: total, used, free, and reserved by the driver.");
  for (const DeviceReport& device : machine.devices) {
    for (const auto& [kind, bytes] :
         {std::pair{"total", std::optional(device.total)}, std::pair{"used", device.used},
          std::pair{"free", device.free}, std::pair{"reserved", device.reserved}}) {
      if (bytes)
        metrics.sample({{"device", device.name}, {"gpu", device.environment.gpu}, {"kind", kind}},
                       bytes->count());
    }
  }
  metrics.family("memfathom_process_memory_bytes", "Memory of a process on a device.");
  for (const DeviceReport& device : machine.devices) {
    for (const GpuProcess& process : device.processes) {
      if (process.used)
        metrics.sample(
            {{"device", device.name}, {"pid", std::to_string(process.pid)}, {"name", process.name}},
            process.used->count());
    }
  }
  metrics.family("memfathom_device_usable", "1 if the device can be used, else 0.");
  for (const DeviceReport& device : machine.devices)
    metrics.sample({{"device", device.name}}, device.problem.empty() ? 1 : 0);
  const auto for_each_match = [&](const auto& add) {
    for (const DeviceReport& device : machine.devices) {
      for (const Match& match : matches_of(device, stored))
        add(OpenMetrics::Labels{{"device", device.name},
                                {"calibration", match.calibration.name},
                                {"framework", match.calibration.environment.framework}},
            match);
    }
  };
  metrics.family("memfathom_calibration_created_timestamp_seconds",
                 "When the calibration of a device was made.");
  for_each_match([&](const OpenMetrics::Labels& labels, const Match& match) {
    if (const auto created = seconds_of(match.calibration.created))
      metrics.sample(labels, *created);
  });
  metrics.family("memfathom_calibration_stale",
                 "1 if driver or libraries differ from those of the calibration.");
  for_each_match([&](const OpenMetrics::Labels& labels, const Match& match) {
    metrics.sample(labels, match.status == "stale" ? 1 : 0);
  });
  return metrics.text();
}

}  // namespace

ExitCode run_status(const Arguments& arguments, Context& context) {
  OptionParser parser("status");
  parser.parse(arguments);
  const MachineReport machine = report_machine();
  const std::optional<Store> store = open_database_if_exists(context);
  const std::vector<Calibration> stored =
      store ? store->calibrations() : std::vector<Calibration>{};

  if (context.format == Format::kOpenMetrics) {
    context.out << metrics_of(machine, stored);
    return ExitCode::kYes;
  }
  if (context.format == Format::kJson) {
    json devices = json::array();
    for (const DeviceReport& device : machine.devices)
      devices.push_back(device_json(device, matches_of(device, stored)));
    context.out << json{{"schema", "memfathom.status/1"},
                        {"devices", std::move(devices)},
                        {"notes", machine.notes}}
                       .dump(2)
                << '\n';
    return ExitCode::kYes;
  }
  Table table({{"device"},
               {"what"},
               {"total", Align::kRight},
               {"used", Align::kRight},
               {"free", Align::kRight},
               {"reserved", Align::kRight}});
  for (const DeviceReport& device : machine.devices) {
    table.add_row({device.name, device.environment.gpu, shown(device.total), shown(device.used),
                   shown(device.free), shown(device.reserved)});
  }
  context.out << rendered(table, context);
  if (context.format == Format::kCsv) return ExitCode::kYes;  // one table a file
  for (const DeviceReport& device : machine.devices)
    print_details(device, matches_of(device, stored), context);
  for (const std::string& note : machine.notes) context.out << '\n' << note << '\n';
  return ExitCode::kYes;
}

}  // namespace memfathom
