#include "cli/estimate/recommend.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/recommend_tables.h"
#include "cli/estimate/recommend_text.h"
#include "cli/job/job_source.h"
#include "cli/option_parser.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/job/patch.h"
#include "estimator/json/answer_json.h"
#include "estimator/json/estimate_json.h"
#include "estimator/readers/write_back.h"
#include "estimator/session/answer_job.h"

namespace memfathom {
namespace {

constexpr const char* kDefaultName = "recommended";

// The output path of a changed file; with several files, NAME.FILE.
std::string place_of(const std::string& name, const std::string& file, bool several) {
  const std::filesystem::path original(file);
  if (several) return fmt::format("{}.{}", name, original.filename().string());
  return name == kDefaultName ? name + original.extension().string() : name;
}

void write_tree(const std::string& place, bool json, const Node& content) {
  write_file_atomically(place, json ? to_indented_json(content) : to_yaml(content));
}

// Writes the whole job, or the user's own files with the changes applied.
void write_recommended(const JobInput& input, const Configuration& configuration,
                       const std::string& name, const Context& context) {
  const Patch patch = patch_of(configuration.patch);
  if (!input.has_foreign_files()) {
    const std::string place = place_of(name, "job.yaml", false);
    write_tree(place, place.ends_with(".json"), patched(input.document, patch));
    context.note(fmt::format("the job with the balanced configuration was written to {}", place));
    return;
  }
  const WrittenBack written = write_back(input.files.files, patch);
  for (const ChangedFile& changed : written.files) {
    const std::string place = place_of(name, changed.file, written.files.size() > 1);
    write_tree(place, changed.file.ends_with(".json"), changed.content);
    context.note(
        fmt::format("{} with the balanced configuration was written to {}", changed.file, place));
  }
  for (const KeyChange& change : written.left_over)
    context.note("set manually: " + manual_setting(change));
}

}  // namespace

void RecommendSettings::declare(OptionParser& parser) {
  parser.option("--probability", probability);
  parser.option_or("--auto", kDefaultName, file);
  parser.list_option("--grid", grid);
  parser.flag("--by-memory", by_memory);
}

ExitCode recommend_for(const JobInput& input, const RecommendSettings& settings,
                       const Estimator& estimator, Context& context) {
  RecommendOptions options;
  options.probability = settings.probability;
  if (options.probability && (*options.probability <= 0 || *options.probability >= 1)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--probability is {}; it must lie between 0 and 1, for example 0.95",
                            *options.probability));
  }
  const EstimateFunction search = estimator.search_function();
  if (!settings.grid.empty())
    return print_largest_batches(input, settings.grid, search, options, context);
  if (settings.by_memory) return print_by_memory(input, search, options, context);
  const RecommendAnswer answer = answer_recommend(input, options, estimator);
  const Recommendation& recommendation = answer.recommendation;
  if (context.format == Format::kJson) {
    context.out << to_text(answer_json(answer, input), kIndented) << '\n';
  } else {
    context.out << recommendation_text(recommendation, answer.checklist, answer.gpu, input,
                                       context);
  }
  const Configuration* balanced = configuration_named(recommendation, "balanced");
  if (settings.file && balanced != nullptr)
    write_recommended(input, *balanced, *settings.file, context);
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
  parser.parse(source.without_command(arguments));
  const JobInput input = source.read("recommend");
  return recommend_for(input, settings, LocalSession(find_database(context)).estimator(), context);
}

}  // namespace memfathom
