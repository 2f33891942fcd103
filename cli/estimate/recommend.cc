#include "cli/estimate/recommend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/recommend_tables.h"
#include "cli/estimate/search_progress.h"
#include "cli/estimate/torch_recording.h"
#include "cli/estimate/write_recommended.h"
#include "cli/job/job_source.h"
#include "cli/option_parser.h"
#include "cli/text/recommend_text.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "estimator/json/answer_json.h"
#include "estimator/json/estimate_json.h"
#include "estimator/readers/unread_keys.h"
#include "estimator/session/answer_job.h"

namespace memfathom {
namespace {

// Seconds since an arbitrary start.
double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void RecommendSettings::declare(OptionParser& parser) {
  parser.option("--probability", probability);
  parser.option_or("--auto", kDefaultRecommendedName, file);
  parser.list_option("--grid", grid);
  parser.flag("--by-memory", by_memory);
  parser.flag("--frontier", frontier);
}

ExitCode recommend_for(const JobInput& input, const JobSource& source,
                       const RecommendSettings& settings, const Estimator& estimator,
                       Context& context) {
  RecommendOptions options;
  options.probability = settings.probability;
  options.frontier = settings.frontier;
  if (estimator.live_target(input.job) != nullptr) options.host_memory = host_memory();
  if (options.probability && (*options.probability <= 0 || *options.probability >= 1)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--probability is {}; it must be between 0 and 1, for example 0.95",
                            *options.probability));
  }
  const EstimateFunction search = estimator.search_function();
  if (!settings.grid.empty() || settings.by_memory) {
    for (const std::string& sentence : unread_sentences(input.files.unread)) context.warn(sentence);
    const ExitCode code = settings.grid.empty() ? print_by_memory(input, search, options, context)
                                                : print_largest_batches(input, settings.grid,
                                                                        search, options, context);
    if (!input.is_open()) return code;
    context.warn("whether any of this fits is undecided, because of these keys");
    return ExitCode::kUndecided;
  }
  const RecommendAnswer answer = [&] {
    SearchProgress progress(context.err, progress_mode(STDERR_FILENO, context.quiet), seconds);
    RecommendOptions shown = options;
    shown.on_estimate = [&] { progress.count(); };
    return answer_recommend(input, shown, estimator);
  }();
  const Recommendation& recommendation = answer.recommendation;
  if (context.format == Format::kJson) {
    context.out << to_text(answer_json(answer, input), kIndented) << '\n';
  } else {
    context.out << recommendation_text(recommendation, answer.checklist, answer.gpu, input,
                                       context);
  }
  const Configuration* balanced = configuration_named(recommendation, "balanced");
  if (settings.file)
    write_recommended(input, source, recommendation, options, search, *settings.file, context);
  if (input.is_open() && recommendation.available) return ExitCode::kUndecided;
  const bool possible = !recommendation.available || balanced != nullptr;
  return possible ? ExitCode::kYes : ExitCode::kNo;
}

ExitCode run_recommend(const Arguments& arguments, Context& context) {
  OptionParser parser("recommend");
  JobSource source;
  RecommendSettings settings;
  bool ignored = false;
  source.declare(parser);
  settings.declare(parser);
  parser.flag("--recommend", ignored);  // accepted so that `estimate --recommend` lines work here
  ViaTorch torch;
  parser.option("--via", torch.via);
  parser.option("--python", torch.python);
  parser.parse(source.without_command(arguments));
  torch.vary = {"batch_size"};
  std::optional<RecordingFile> trace;  // as long as the job is asked about
  const JobInput input = recorded_if_asked(source.read("recommend"), torch, trace, context);
  const LocalSession session(find_database(context));
  return recommend_for(input, source, settings, session.estimator(), context);
}

}  // namespace memfathom
