// The actions of `memfathom fleet`, one file each.
#pragma once

#include "cli/command.h"

namespace memfathom {

ExitCode fleet_calibrate(const Arguments& arguments, Context& context);
ExitCode fleet_status(const Arguments& arguments, Context& context);
ExitCode fleet_bench(const Arguments& arguments, Context& context);
ExitCode fleet_metrics(const Arguments& arguments, Context& context);
ExitCode fleet_install_filter(const Arguments& arguments, Context& context);
ExitCode fleet_admit(const Arguments& arguments, Context& context);
ExitCode fleet_job(const Arguments& arguments, Context& context);

}  // namespace memfathom
