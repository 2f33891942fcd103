#include <fmt/format.h>

#include <ostream>

#include "cli/commands.h"
#include "cli/database.h"
#include "cli/measured_jobs.h"
#include "cli/option_parser.h"
#include "db/store.h"

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

  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  Store::Batch batch(store);
  int added = 0;
  int known = 0;
  for (const MeasuredJob& row : read_measured_jobs(file)) {
    if (!row.phase.empty()) continue;  // a phase's figure is no total
    Observation observation = what;
    observation.job = row.job_text;
    observation.metric = row.metric;
    observation.bytes = row.bytes;
    observation.fits = row.fits;
    observation.group = row.group;
    if (observation.gpu.empty()) observation.gpu = row.job.target.gpu;
    (store.insert_observation(observation) ? added : known) += 1;
  }
  batch.commit();
  context.out << fmt::format("{} observations added, {} were known\n", added, known);
  return ExitCode::kYes;
}

}  // namespace memfathom
