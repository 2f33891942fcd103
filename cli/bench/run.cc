#include "cli/bench/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "cli/bench/bench.h"
#include "cli/option_parser.h"
#include "core/error.h"
#include "profiler/checked_probe.h"

namespace memfathom {
namespace {

constexpr std::chrono::seconds kProbeLimit{300};

// A missing library is an error: never use another one silently.
void check_libraries(const BenchRunOptions& options) {
  const auto check = [&](const char* option, const std::string& named,
                         const std::filesystem::path& file) {
    if (named.empty()) return;
    if (!options.device.starts_with("cudnn:")) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} requires --device cudnn:..., not {}", option, options.device));
    }
    if (access(file.c_str(), R_OK) != 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} is \"{}\": {} cannot be read", option, named, file.string()));
    }
  };
  check("--cudnn-library", options.cudnn_library,
        std::filesystem::path(options.cudnn_library) / "libcudnn.so.9");
  check("--libcuda", options.libcuda, options.libcuda);
}

BenchRunOptions options_in(const Arguments& arguments) {
  BenchRunOptions options;
  std::int64_t repetitions = options.repetitions;
  OptionParser parser("bench run");
  parser.option("--device", options.device);
  parser.option("--filter", options.filter);
  parser.option("--repetitions", repetitions);
  parser.option("--out", options.out);
  parser.option("--cudnn-library", options.cudnn_library);
  parser.option("--libcuda", options.libcuda);
  parser.option("--plant", options.plant);
  parser.option("--seed", options.seed);
  parser.option("--scale", options.scale);
  parser.flag("--list", options.list);
  parser.parse(arguments);
  if (options.device.empty()) {
    throw Error(ErrorKind::kUsage,
                "bench run: --device is missing; write cudnn:sm_90, cuda:0, cpu or virtual:NAME");
  }
  if (options.out.empty() && !options.list)
    throw Error(ErrorKind::kUsage, "bench run: --out is missing; name the file to write");
  if (!options.scale.empty() && options.scale != "tiny" && options.scale != "small" &&
      options.scale != "full") {
    throw Error(ErrorKind::kUsage,
                fmt::format("--scale is \"{}\"; write tiny, small or full", options.scale));
  }
  if (repetitions < 1 || repetitions > 1000) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--repetitions is {}; write 1 to 1000", repetitions));
  }
  options.repetitions = static_cast<int>(repetitions);
  check_libraries(options);
  return options;
}

}  // namespace

ExitCode bench_run(const Arguments& arguments, Context& context) {
  const BenchRunOptions options = options_in(arguments);
  if (options.list) {
    for (const std::string& name : suite_names(options)) context.out << name << '\n';
    return ExitCode::kYes;
  }
  if (suite_names(options).empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--filter \"{}\" matches no benchmark; use --list for their names",
                            options.filter));
  }
  if (options.device.starts_with("cudnn:")) {
    run_cudnn_suite(options, context);
  } else {
    const ProbeProgram program = own_probe_program();
    run_device_suite(
        options,
        [&](const ProbeRequest& request) {
          return run_checked_probe(program, request, {.limit = kProbeLimit});
        },
        context);
  }
  context.out << options.out << '\n';
  return ExitCode::kYes;
}

}  // namespace memfathom
