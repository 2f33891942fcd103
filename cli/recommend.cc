#include "cli/recommend.h"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimation.h"
#include "cli/job_source.h"
#include "cli/option_parser.h"
#include "cli/recommend_text.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/advise/patch.h"
#include "estimator/readers/merge.h"

namespace memfathom {
namespace {

// The whole job, or, where the job came from somebody's own file, that file with the changes in it.
void write_recommended(const JobInput& input, const Configuration& configuration,
                       const std::string& file, const Context& context) {
  const Patch patch = patch_of(configuration.patch);
  const std::vector<Reading>& files = input.files.files;
  if (!files.empty() && files.front().format != FileFormat::kJob) {
    Patch left_over;
    for (ChangedFile& changed : write_back(input.files, patch, left_over)) {
      const std::string place =
          files.size() == 1
              ? file
              : fmt::format("{}.{}", file, std::filesystem::path(changed.file).filename().string());
      const bool json = changed.file.ends_with(".json");
      write_file_atomically(place,
                            json ? to_indented_json(changed.content) : to_yaml(changed.content));
      context.note(
          fmt::format("{} with the balanced configuration was written to {}", changed.file, place));
    }
    for (const KeyChange& change : left_over) {
      context.note(
          fmt::format("{} cannot be said in these files: set it in the script", change.key));
    }
    return;
  }
  const Node content = patched(input.document, patch);
  write_file_atomically(file,
                        file.ends_with(".json") ? to_indented_json(content) : to_yaml(content));
  context.note(fmt::format("the job with the balanced configuration was written to {}", file));
}

}  // namespace

void RecommendSettings::declare(OptionParser& parser) {
  parser.option("--probability", probability);
  parser.option("--auto", file);
}

ExitCode recommend_for(const JobInput& input, const RecommendSettings& settings,
                       const Estimation& estimation, Context& context) {
  RecommendOptions options;
  options.probability = settings.probability;
  if (options.probability && (*options.probability <= 0 || *options.probability >= 1)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--probability is {}; it must lie between 0 and 1, for example 0.95",
                            *options.probability));
  }
  Recommendation recommendation = recommend(
      input.document, [&](const Job& job) { return estimation.answer(job); }, options);
  input.annotate(recommendation.base);
  if (context.format == Format::kJson) {
    context.out << recommendation_json(recommendation) << '\n';
  } else {
    context.out << recommendation_text(recommendation, context);
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
  parser.flag("--recommend", ignored);  // so that a line of `estimate --recommend` works here too
  parser.parse(arguments);
  return recommend_for(source.read("recommend"), settings, Estimation(context), context);
}

}  // namespace memfathom
