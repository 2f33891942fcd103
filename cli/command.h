// Command: an entry of the command table, and the context it runs in.
//
// To add a command `frob`:
//   1. cli/frob.cc with `ExitCode run_frob(const Arguments& arguments, Context& context)`. Declare
//   its options with an
//      OptionParser (cli/option_parser.h), call parse(arguments), do the work through the
//      libraries, write the result to context.out (nothing else goes there), report the rest with
//      context.note(). Errors are thrown, not printed.
//   2. Declare run_frob in cli/commands.h, add its line to the table in cli/commands.cc and its
//   file to cli/CMakeLists.txt.
//   3. docs/commands/frob.md: the page that `memfathom frob --help` prints. Name every option
//   there: completion reads it.
//      CMake embeds every page of cli/CMakeLists.txt's list; the tests fail for a command without
//      one.
// A command whose name starts with "__" is internal: not listed, no page.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"
#include "cli/language/language.h"
#include "core/enum_names.h"

namespace memfathom {

enum class Format {
  kTable,
  kJson,
  kCsv,
  kMarkdown,
  kOpenMetrics  // of `status` and `fleet metrics` only; program.cc refuses it elsewhere
};

template <>
inline constexpr auto kEnumNames<Format> =
    std::to_array<EnumName<Format>>({{Format::kTable, "table"},
                                     {Format::kJson, "json"},
                                     {Format::kCsv, "csv"},
                                     {Format::kMarkdown, "markdown"},
                                     {Format::kOpenMetrics, "openmetrics"}});

// What follows the command's name, without the global options; option names have hyphens, never
// underscores.
using Arguments = std::vector<std::string>;

struct Context {
  std::ostream&
      out;  // the result: standard output, or the file of --output once the command is done
  std::ostream& err;              // everything else
  std::optional<std::string> db;  // --db; the default is the store's own (db/location.h)
  Format format = Format::kTable;
  bool quiet = false;
  bool verbose = false;
  bool colour = false;                     // whether `out` may be coloured
  std::size_t columns = 0;                 // of `out`, if it is a terminal; 0: lines of any length
  std::size_t error_columns = 0;           // the same for `err`
  Language language = Language::kEnglish;  // of what people read; JSON and CSV are English

  void note(std::string_view sentence) const;    // silent with --quiet
  void detail(std::string_view sentence) const;  // only with --verbose
  void warn(std::string_view sentence) const;    // always
};

struct Command {
  std::string_view name;
  std::string_view summary;  // a line of `memfathom --help`
  ExitCode (*run)(const Arguments& arguments, Context& context);

  bool is_internal() const { return name.starts_with("__"); }
};

// All commands, in the order of the help. Only working commands are listed.
std::span<const Command> commands();

// The docs/commands/ page of a command; empty for internal ones.
std::string_view page_of(const Command& command);

// The options on a command's page ("--device"), then the global ones, for completion.
std::vector<std::string> options_of(const Command& command);

}  // namespace memfathom
