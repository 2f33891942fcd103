#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <ostream>
#include <sstream>
#include <system_error>

#include "cli/command.h"
#include "cli/global_options.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/suggest.h"
#include "core/wrap.h"

namespace memfathom {
namespace {

std::string help() {
  std::string text =
      "memfathom estimates how much GPU memory a training or inference job needs before it "
      "runs.\n\n"
      "usage: memfathom COMMAND [options]\n\ncommands:\n";
  for (const Command& command : commands()) {
    if (!command.is_internal()) text += fmt::format("  {:<14} {}\n", command.name, command.summary);
  }
  text +=
      "\nglobal options:\n  --db FILE        the database (default: $MEMFATHOM_DB, else the XDG "
      "data directory)\n  --format FORMAT  table, json, csv or markdown; status also writes "
      "openmetrics\n  --output FILE    write the result to a file instead of standard output\n  "
      "--quiet          no progress and no remarks\n  --verbose        more detail\n  --no-color   "
      "    no colours (also: NO_COLOR in the environment)\n  --lang LANGUAGE  en or zh (default: "
      "LC_ALL, LC_MESSAGES or LANG); JSON and CSV stay English\n  --help           this text, or "
      "the page of a command\n  --version        the version\n\n`memfathom COMMAND --help` shows "
      "the page of a command.\n";
  return text;
}

const Command& find_command(std::string_view name) {
  const auto all = commands();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string_view> names;
  for (const Command& command : all) {
    if (!command.is_internal()) names.push_back(command.name);
  }
  const auto near = nearest_name(name, names);
  throw Error(ErrorKind::kUsage, fmt::format("\"{}\" is not a command; {}", name,
                                             near ? fmt::format("did you mean {}?", *near)
                                                  : "memfathom --help lists them"));
}

// Copied, the lines of completion are a program; the other formats are for programs too.
bool is_wrapped(const CommandLine& line) {
  return line.global.format == Format::kTable && line.command != "completion" &&
         !line.global.output;
}

// JSON and CSV are for programs: the same in every language.
Language language_of(const GlobalOptions& global, const Terminal& terminal) {
  const bool for_people = global.format == Format::kTable || global.format == Format::kMarkdown;
  return for_people ? global.language.value_or(terminal.language) : Language::kEnglish;
}

void require_known_format(const CommandLine& line) {
  const bool is_fleet_metrics =
      line.command == "fleet" && !line.arguments.empty() && line.arguments.front() == "metrics";
  if (line.global.format != Format::kOpenMetrics || line.command == "status" || is_fleet_metrics)
    return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} does not write openmetrics; `memfathom status` and `memfathom fleet "
                          "metrics` do",
                          line.command));
}

ExitCode run_command(const CommandLine& line, std::ostream& out, std::ostream& err,
                     const Terminal& terminal) {
  const Command& command = find_command(line.command);
  if (line.global.help) {
    out << wrapped(page_of(command), terminal.columns);
    return ExitCode::kYes;
  }
  require_known_format(line);
  std::ostringstream file_content;
  const bool to_file = line.global.output.has_value();
  const bool in_colour = terminal.colour && !to_file && !line.global.no_color;
  const std::size_t columns = is_wrapped(line) ? terminal.columns : 0;
  PrintableBuffer printable_lines(to_file ? file_content : out, in_colour, columns);
  std::ostream printable_out(&printable_lines);
  Context context{.out = printable_out,
                  .err = err,
                  .db = line.global.db,
                  .format = line.global.format,
                  .quiet = line.global.quiet,
                  .verbose = line.global.verbose,
                  .colour = in_colour,
                  .columns = columns,
                  .error_columns = terminal.error_columns,
                  .language = language_of(line.global, terminal)};
  const ExitCode code = command.run(line.arguments, context);
  printable_out.flush();
  // A stream keeps what it catches to itself. Where its target is well, memory has failed.
  const bool is_target_well = to_file ? file_content.good() : out.good();
  if (!file_content || (!printable_out && is_target_well)) throw std::bad_alloc();
  if (to_file) write_file_atomically(*line.global.output, file_content.str());
  return code;
}

ExitCode dispatch(const std::vector<std::string>& words, std::ostream& out, std::ostream& err,
                  const Terminal& terminal) {
  CommandLine line = parse_command_line(words);
  if (line.command == "help") {  // `memfathom help estimate` is `memfathom estimate --help`
    line.global.help = true;
    line.command = line.arguments.empty() ? "" : line.arguments.front();
  }
  if (line.global.version && line.command.empty()) {
    out << "memfathom " << MEMFATHOM_VERSION << '\n';
    return ExitCode::kYes;
  }
  if (!line.command.empty()) return run_command(line, out, err, terminal);
  if (line.global.help) {
    out << wrapped(help(), terminal.columns);
    return ExitCode::kYes;
  }
  err << wrapped(help(), terminal.error_columns);
  return ExitCode::kUsage;
}

}  // namespace

ExitCode run_program(const std::vector<std::string>& words, std::ostream& out, std::ostream& err,
                     const Terminal& terminal) {
  try {
    const ExitCode code = dispatch(words, out, err, terminal);
    out.flush();
    if (!out)
      throw Error(ErrorKind::kEnvironment, "standard output cannot be written; is the disk full?");
    return code;
  } catch (const Error& error) {
    err << wrapped(fmt::format("memfathom: {}\n", printable(error.what())), terminal.error_columns);
    return exit_code_of(error.kind());
  } catch (const std::system_error& error) {  // of the file system, streams and threads
    err << "memfathom: the system refused: " << printable(error.what()) << '\n';
    return ExitCode::kEnvironment;
  } catch (const std::bad_alloc&) {
    err << "memfathom: out of host memory; close other programs or reduce the request\n";
    return ExitCode::kEnvironment;
  } catch (const std::exception& error) {
    err << "memfathom: internal error: " << printable(error.what())
        << "; please report it with the command line\n";
    return ExitCode::kBug;
  }
}

}  // namespace memfathom
