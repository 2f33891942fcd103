#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "cli/commands.h"
#include "cli/global_options.h"
#include "cli/option_parser.h"
#include "core/error.h"

namespace memfathom {
namespace {

std::string bash_script() {
  std::vector<std::string_view> names;
  std::string cases;
  for (const Command& command : commands()) {
    if (command.is_internal()) continue;
    names.push_back(command.name);
    cases += fmt::format("    {}) options=\"{}\" ;;\n", command.name,
                         fmt::join(options_of(command), " "));
  }
  return fmt::format(
      R"bash(# bash completion of memfathom; load it with: source <(memfathom completion bash)
_memfathom() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="" options="{}" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*) ;; *) command="$word"; break ;; esac
  done
  case "$command" in
    "") [[ "$current" == -* ]] || options="{}" ;;
{}  esac
  if [[ "$previous" == --format ]]; then
    options="table json csv markdown"
  elif [[ -n "$command" && "$current" != -* ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
    return
  fi
  COMPREPLY=($(compgen -W "$options" -- "$current"))
}}
complete -o filenames -F _memfathom memfathom
)bash",
      fmt::join(global_option_names(), " "), fmt::join(names, " "), cases);
}

}  // namespace

ExitCode run_completion(const Arguments& arguments, Context& context) {
  std::string shell;
  OptionParser options("completion");
  options.positional("SHELL", shell);
  options.parse(arguments);
  if (shell != "bash") {
    throw Error(ErrorKind::kUsage,
                fmt::format("completion: the shell \"{}\" is not supported; use bash", shell));
  }
  context.out << bash_script();
  return ExitCode::kYes;
}

}  // namespace memfathom
