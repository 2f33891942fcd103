#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>

#include "cli/database.h"
#include "cli/fleet/admission.h"
#include "cli/fleet/filters.h"
#include "cli/fleet/fleet.h"
#include "cli/option_parser.h"
#include "core/atomic_file.h"
#include "core/error.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "-- memfathom fleet install-filter";

// The folder of slurm.conf, where Slurm looks for its Lua scripts.
std::string slurm_folder() {
  const char* conf = std::getenv("SLURM_CONF");
  return conf != nullptr && conf[0] == '/' ? fs::path(conf).parent_path().string() : "/etc/slurm";
}

// The path becomes part of a Lua text and of a shell command.
void require_plain_path(const char* option, const std::string& path) {
  const bool is_plain =
      path.starts_with('/') && std::all_of(path.begin(), path.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("/._+-").find(static_cast<char>(c)) != std::string_view::npos;
      });
  if (is_plain) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} is \"{}\"; a filter needs an absolute path of letters, digits and "
                          "/ . _ + -",
                          option, path));
}

void require_ours_or_absent(const fs::path& file) {
  std::ifstream input(file);
  std::string first;
  if (!input || !std::getline(input, first) || first.starts_with(kMark)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{} exists and is not memfathom's; move it away, or write ours elsewhere "
                          "with --to DIR and call its functions from yours",
                          file.string()));
}

std::string filled(std::string text, const std::string& mark, const std::string& value) {
  const std::size_t at = text.find(mark);
  if (at != std::string::npos) text.replace(at, mark.size(), value);
  return text;
}

}  // namespace

ExitCode fleet_install_filter(const Arguments& arguments, Context& context) {
  std::string folder = slurm_folder();
  std::string program = fs::read_symlink("/proc/self/exe").string();
  double probability = 0.95;
  std::int64_t limit = 2;
  std::vector<std::string> gpus;
  OptionParser parser("fleet install-filter");
  parser.option("--to", folder);
  parser.option("--program", program);
  parser.option("--probability", probability);
  parser.option("--limit", limit);
  parser.option("--gpus", gpus);
  parser.parse(arguments);
  if (!(probability >= 0.5 && probability < 1)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--probability is {}; write 0.5 to below 1: above it a job is refused",
                            probability));
  }
  if (limit < 1 || limit > 60)
    throw Error(ErrorKind::kUsage, fmt::format("--limit is {}; write 1 to 60 seconds", limit));
  const std::string names = fmt::format("{}", fmt::join(gpus, ","));
  gpu_names_in(names, "--gpus");
  const std::string database = fs::absolute(database_path(context)).string();
  require_plain_path("--program", program);
  require_plain_path("--db", database);
  for (const EmbeddedFile& filter : filter_files())
    require_ours_or_absent(fs::path(folder) / filter.name);
  for (const EmbeddedFile& filter : filter_files()) {
    std::string text(filter.text);
    text = filled(text, "@PROGRAM@", program);
    text = filled(text, "@DATABASE@", database);
    text = filled(text, "@LIMIT@", std::to_string(limit));
    text = filled(text, "@PROBABILITY@", fmt::format("{}", probability));
    text = filled(text, "@GPUS@", names);
    const fs::path file = fs::path(folder) / filter.name;
    write_file_atomically(file.string(), text);
    context.out << file.string() << '\n';
  }
  context.note(
      "now add to slurm.conf, then run `scontrol reconfigure` or restart slurmctld:\n"
      "  CliFilterPlugins=cli_filter/lua\n"
      "  JobSubmitPlugins=job_submit/lua");
  return ExitCode::kYes;
}

}  // namespace memfathom
