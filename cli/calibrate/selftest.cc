#include "kernels/devices/selftest/selftest.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/commands.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/json_io.h"
#include "kernels/devices/cpu/open.h"
#include "kernels/devices/cuda_loader.h"
#include "profiler/probe_target.h"

namespace memfathom {
namespace {

using nlohmann::json;

std::unique_ptr<Device> open_device(const std::string& text) {
  const DeviceName name = parse_device(text);
  switch (name.kind) {
    case DeviceKind::kCpu: return open_cpu_device();
    case DeviceKind::kCuda: return open_cuda_device(name.index);
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format(
          "--device is \"{}\"; a simulated GPU computes no results to test; use cpu or cuda:0",
          text));
}

json to_json(const SelftestReport& report, const Environment& environment) {
  json cases = json::array();
  for (const SelftestCase& result : report.cases) {
    // A difference that is not a number is null.
    cases.push_back({{"name", result.name},
                     {"passed", result.passed()},
                     {"difference", result.difference},
                     {"tolerance", result.tolerance},
                     {"failure", result.failure.empty() ? json(nullptr) : json(result.failure)}});
  }
  return {{"schema", "memfathom.selftest/1"},    {"device", report.device},
          {"environment", to_json(environment)}, {"passed", report.passed()},
          {"failures", report.failures()},       {"cases", std::move(cases)}};
}

std::string outcome_of(const SelftestCase& result) {
  if (!result.failure.empty()) return result.failure;
  return result.passed() ? "agrees" : "differs";
}

}  // namespace

ExitCode run_selftest(const Arguments& arguments, Context& context) {
  std::optional<std::string> name;
  OptionParser parser("selftest");
  parser.option("--device", name);
  parser.parse(arguments);
  const std::unique_ptr<Device> device = open_device(name.value_or("cuda:0"));
  const SelftestReport report = compare_with_reference(*device);
  if (context.format == Format::kJson) {
    context.out << to_json(report, device->environment()).dump(2) << '\n';
  } else {
    Table table({{"case"}, {"difference", Align::kRight}, {"allowed", Align::kRight}, {"outcome"}});
    for (const SelftestCase& result : report.cases) {
      // Tables list only failures unless --verbose is set; other formats list all cases.
      if (result.passed() && context.format == Format::kTable && !context.verbose) continue;
      table.add_row({result.name, fmt::format("{:.1e}", result.difference),
                     fmt::format("{:.1e}", result.tolerance), outcome_of(result)});
    }
    if (!report.passed() || context.format != Format::kTable || context.verbose)
      context.out << rendered(table, context);
    if (context.format == Format::kTable) {
      context.out << fmt::format("{}: {} of {} cases agree with the reference\n", report.device,
                                 report.cases.size() - static_cast<std::size_t>(report.failures()),
                                 report.cases.size());
    }
  }
  return report.passed() ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace memfathom
