#include "cli/fleet/fleet.h"

#include <fmt/format.h>

#include <array>

#include "cli/commands.h"
#include "core/error.h"
#include "core/suggest.h"

namespace memfathom {

ExitCode run_fleet(const Arguments& arguments, Context& context) {
  struct FleetAction {
    std::string_view name;
    ExitCode (*run)(const Arguments& arguments, Context& context);
  };
  static constexpr std::array kActions{FleetAction{"calibrate", fleet_calibrate},
                                       FleetAction{"status", fleet_status},
                                       FleetAction{"bench", fleet_bench},
                                       FleetAction{"metrics", fleet_metrics},
                                       FleetAction{"install-filter", fleet_install_filter},
                                       FleetAction{"admit", fleet_admit},
                                       FleetAction{"job", fleet_job}};
  std::vector<std::string_view> names;
  for (const FleetAction& action : kActions) names.push_back(action.name);
  if (arguments.empty())
    throw Error(ErrorKind::kUsage, fmt::format("usage: memfathom fleet {}", fmt::join(names, "|")));
  for (const FleetAction& action : kActions) {
    if (action.name == arguments.front())
      return action.run(Arguments(arguments.begin() + 1, arguments.end()), context);
  }
  throw Error(ErrorKind::kUsage, fmt::format("fleet: unknown action \"{}\"; {}", arguments.front(),
                                             suggestion(arguments.front(), names)));
}

}  // namespace memfathom
