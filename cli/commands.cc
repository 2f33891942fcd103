#include "cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "cli/global_options.h"
#include "cli/pages.h"
#include "core/printable.h"
#include "core/wrap.h"

namespace memfathom {

std::span<const Command> commands() {
  static constexpr std::array kCommands{
      Command{"estimate", "how much memory a job takes, and whether it fits", run_estimate},
      Command{"status", "the devices of this machine, their free memory and processes", run_status},
      Command{"calibrate", "measure a device and fit its constants", run_calibrate},
      Command{"profile", "the measuring half of calibrate", run_profile},
      Command{"fit", "the fitting half of calibrate", run_fit},
      Command{"recommend", "changes that make a job fit, and the largest size that fits",
              run_recommend},
      Command{"compare", "strategies side by side against a baseline", run_compare},
      Command{"report", "an estimate, a calibration or a bench comparison as one HTML page",
              run_report},
      Command{"serve", "the web page and a JSON interface, on this machine", run_serve},
      Command{"check", "run a command only if its job fits", run_check},
      Command{"capture", "record a PyTorch script without a GPU, and estimate its step",
              run_capture},
      Command{"explain", "what a PyTorch memory snapshot held at its peak or failure", run_explain},
      Command{"oom", "what an out-of-memory message says, and what would help", run_oom},
      Command{"models", "the known models, with their size", run_models},
      Command{"gpus", "the known GPUs, and which of them a job fits on", run_gpus},
      Command{"calibrations", "list, show and compare calibrations", run_calibrations},
      Command{"bench", "what changed after an upgrade, and what caused it", run_bench},
      Command{"fleet", "calibrate, compare and guard the nodes of a Slurm cluster", run_fleet},
      Command{"observe", "store measured runs of real jobs", run_observe},
      Command{"observations", "list stored observations, set some aside, take them back",
              run_observations},
      Command{"samples",
              "list the samples of calibrate and profile, set some aside, take them back",
              run_samples},
      Command{"monitor", "watch a running process and print its peak memory", run_monitor},
      Command{"accuracy", "compare the estimates with measured jobs", run_accuracy},
      Command{"selftest", "compare a device's results with plain loops", run_selftest},
      Command{"db", "maintain the database: info, check, merge, export, import, backup", run_db},
      Command{"completion", "print the completion script of a shell", run_completion},
      Command{"__probe", "measures one sample", run_probe_command},
  };
  return kCommands;
}

std::string_view page_of(const Command& command) {
  if (command.is_internal()) return "";
  const std::string file = fmt::format("{}.md", command.name);
  for (const EmbeddedFile& page : command_pages()) {
    if (page.name == file) return page.text;
  }
  return "";
}

std::vector<std::string> options_of(const Command& command) {
  std::vector<std::string> options;
  const std::string_view page = page_of(command);
  for (std::size_t at = page.find("--"); at != std::string_view::npos; at = page.find("--", at)) {
    const std::size_t end =
        std::min(page.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at), page.size());
    const bool starts_a_word =
        at == 0 || std::string_view(" `|[(\n").find(page[at - 1]) != std::string_view::npos;
    const bool is_rule = page.substr(at, end - at).find_first_not_of('-') == std::string_view::npos;
    if (starts_a_word && !is_rule) options.emplace_back(page.substr(at, end - at));
    at = end;
  }
  for (const std::string_view name : global_option_names()) options.emplace_back(name);
  std::sort(options.begin(), options.end());
  options.erase(std::unique(options.begin(), options.end()), options.end());
  return options;
}

void Context::note(std::string_view sentence) const {
  if (!quiet) err << wrapped(printable(sentence), error_columns) << '\n';
}

void Context::detail(std::string_view sentence) const {
  if (verbose) err << wrapped(printable(sentence), error_columns) << '\n';
}

void Context::warn(std::string_view sentence) const {
  err << wrapped(translated(language, "warning: {}", {printable(sentence)}), error_columns) << '\n';
}

}  // namespace memfathom
