// The functions behind the table of commands (cli/commands.cc), one per file of cli/.
#pragma once

#include "cli/command.h"

namespace memfathom {

ExitCode run_bench(const Arguments& arguments, Context& context);
ExitCode run_calibrate(const Arguments& arguments, Context& context);
ExitCode run_calibrations(const Arguments& arguments, Context& context);
ExitCode run_completion(const Arguments& arguments, Context& context);
ExitCode run_db(const Arguments& arguments, Context& context);
ExitCode run_capture(const Arguments& arguments, Context& context);
ExitCode run_explain(const Arguments& arguments, Context& context);
ExitCode run_oom(const Arguments& arguments, Context& context);
ExitCode run_check(const Arguments& arguments, Context& context);
ExitCode run_compare(const Arguments& arguments, Context& context);
ExitCode run_recommend(const Arguments& arguments, Context& context);
ExitCode run_report(const Arguments& arguments, Context& context);
ExitCode run_fleet(const Arguments& arguments, Context& context);
ExitCode run_gpus(const Arguments& arguments, Context& context);
ExitCode run_monitor(const Arguments& arguments, Context& context);
ExitCode run_models(const Arguments& arguments, Context& context);
ExitCode run_estimate(const Arguments& arguments, Context& context);
ExitCode run_fit(const Arguments& arguments, Context& context);
ExitCode run_probe_command(const Arguments& arguments, Context& context);
ExitCode run_profile(const Arguments& arguments, Context& context);
ExitCode run_selftest(const Arguments& arguments, Context& context);
ExitCode run_serve(const Arguments& arguments, Context& context);
ExitCode run_status(const Arguments& arguments, Context& context);
ExitCode run_accuracy(const Arguments& arguments, Context& context);
ExitCode run_observe(const Arguments& arguments, Context& context);
ExitCode run_observations(const Arguments& arguments, Context& context);
ExitCode run_samples(const Arguments& arguments, Context& context);

}  // namespace memfathom
