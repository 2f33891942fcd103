#include <fmt/format.h>

#include <ostream>

#include "cli/commands.h"
#include "cli/observe/observation_file.h"
#include "cli/observe/stored_observations.h"
#include "cli/option_parser.h"
#include "core/error.h"

namespace memfathom {

ExitCode run_observe(const Arguments& arguments, Context& context) {
  OptionParser parser("observe");
  std::string file;
  Observation what;
  what.framework = "pytorch";
  parser.positional("FILE", file);
  parser.option("--gpu", what.gpu);
  parser.option("--driver", what.driver);
  parser.option("--cuda", what.cuda);
  parser.option("--cudnn", what.cudnn);
  parser.option("--framework", what.framework);
  parser.option("--framework-version", what.framework_version);
  parser.option("--source", what.source);
  parser.parse(arguments);

  const std::vector<Observation> observations = read_observations(file, what);
  if (observations.empty()) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the file has no observations; see memfathom observe --help for the format",
                    file));
  }
  const int added = store_observations(observations, context);
  context.out << fmt::format("{} observations added, {} already stored\n", added,
                             static_cast<int>(observations.size()) - added);
  return ExitCode::kYes;
}

}  // namespace memfathom
