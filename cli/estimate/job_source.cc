#include "cli/estimate/job_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "estimator/advise/changes.h"
#include "estimator/job/describe.h"
#include "estimator/job/read_job.h"
#include "estimator/readers/language_part.h"
#include "estimator/readers/named_model.h"
#include "estimator/readers/own_family.h"
#include "estimator/readers/pipeline.h"
#include "estimator/readers/position_limit.h"
#include "estimator/readers/resolve.h"

namespace memfathom {
namespace {

bool is_whole_number(const std::string& text) {
  return !text.empty() && text.size() < 19 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

void JobSource::declare(OptionParser& parser) {
  options_.declare(parser);
  parser.positional("JOB", file_);
  parser.list_option("--config,--from", from_);
  parser.option("--batch", batch_);
  parser.flag("--frozen-copy", frozen_copy_);
}

bool JobSource::given() const { return file_ || !from_.empty() || options_.any_given(); }

std::optional<std::string> JobSource::batch_file() const {
  return batch_ && !is_whole_number(*batch_) ? batch_ : std::nullopt;
}

namespace {

// Files that only name their model, by a name that nothing here explains.
void require_model(const JobInput& input) {
  if (says_model(input.document)) return;
  std::string which = "the files say how to train, but not which model";
  for (const Reading& reading : input.files.files) {
    if (!reading.base_model.empty())
      which = fmt::format(
          "{} names the model {}, which is no preset, no folder here and not in the local Hugging "
          "Face cache",
          reading.file, reading.base_model);
  }
  throw Error(ErrorKind::kInput,
              which +
                  "; add --model FOLDER with its config.json, --model PRESET (memfathom models "
                  "lists them) or --total-params 8.0");
}

}  // namespace

JobInput JobSource::read(const std::string& command) const {
  if (!given()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} needs a job: a YAML or JSON file, --from FILE..., or --model NAME "
                            "(see memfathom estimate --help)",
                            command));
  }
  std::vector<std::string> files = from_;
  if (file_) files.insert(files.begin(), *file_);
  JobInput input;
  std::vector<Reading> readings = read_paths(files);
  if (const std::optional<std::string> model = options_.model_path()) {
    for (Reading& reading : read_path(*model)) readings.push_back(std::move(reading));
  }
  input.files = merge_files(std::move(readings));
  input.document = options_.document(input.files.document);
  if (batch_ && is_whole_number(*batch_))
    input.document.assign("training.batch_size", Node::integer(std::stoll(*batch_)));
  complete_own_family(input.document, input.files.assumptions);
  require_model(input);
  complete_model_names(input.document, huggingface_cache(), input.files.assumptions);
  take_language_part(input.document, input.files);
  if (!options_.says_precision()) keep_stored_type(input.files.files, input.document, input.files);
  resolve_open(input.files.files, input.document, input.files);
  if (input.has_own_words()) assume_length(input.document, input.files.assumptions);
  aim_autoencoder(input.files.files, input.document);
  if (frozen_copy_) {
    const Patch patch = strategy_patch("frozen-copy", read_job(input.document));
    input.document = patched(std::move(input.document), patch);
  }
  input.job = read_job(input.document);
  return input;
}

bool JobInput::has_own_words() const {
  return std::any_of(files.files.begin(), files.files.end(), [](const Reading& reading) {
    return reading.format != FileFormat::kJob && reading.format != FileFormat::kModelConfig;
  });
}

void JobInput::annotate(Estimate& estimate) const {
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(estimate.assumptions, files.assumptions);
  if (std::string sentence = unsaid(document, job); !sentence.empty())
    estimate.assumptions.push_back(std::move(sentence));
  append(estimate.not_modelled, files.not_modelled);
  append(estimate.warnings, files.warnings);
  if (std::string sentence = beyond_positions(document); !sentence.empty())
    estimate.warnings.push_back(std::move(sentence));
}

}  // namespace memfathom
