// The actions of `memfathom bench`, one file each.
#pragma once

#include "cli/command.h"
#include "profiler/regression/bench_file.h"

namespace memfathom {

ExitCode bench_run(const Arguments& arguments, Context& context);
ExitCode bench_compare(const Arguments& arguments, Context& context);
ExitCode bench_baseline(const Arguments& arguments, Context& context);

// A file of `bench run`, or a baseline of the database by its name or id. Throws Error(kInput).
BenchFile bench_file_named(const std::string& file_or_baseline, const Context& context);

}  // namespace memfathom
