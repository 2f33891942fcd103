#include "cli/bench/bench.h"

#include <fmt/format.h>

#include <array>

#include "cli/commands.h"
#include "core/error.h"
#include "core/suggest.h"

namespace memfathom {

ExitCode run_bench(const Arguments& arguments, Context& context) {
  struct BenchAction {
    std::string_view name;
    ExitCode (*run)(const Arguments& arguments, Context& context);
  };
  static constexpr std::array kActions{BenchAction{"run", bench_run},
                                       BenchAction{"compare", bench_compare},
                                       BenchAction{"baseline", bench_baseline}};
  if (arguments.empty())
    throw Error(ErrorKind::kUsage, "usage: memfathom bench run|compare|baseline");
  std::vector<std::string_view> names;
  for (const BenchAction& action : kActions) {
    if (action.name == arguments.front())
      return action.run(Arguments(arguments.begin() + 1, arguments.end()), context);
    names.push_back(action.name);
  }
  throw Error(ErrorKind::kUsage, fmt::format("bench: unknown action \"{}\"; {}", arguments.front(),
                                             suggestion(arguments.front(), names)));
}

}  // namespace memfathom
