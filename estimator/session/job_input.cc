#include "estimator/session/job_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "estimator/advise/changes.h"
#include "estimator/job/describe.h"
#include "estimator/job/patch.h"
#include "estimator/job/read_job.h"
#include "estimator/readers/builtin_family.h"
#include "estimator/readers/language_model_part.h"
#include "estimator/readers/named_model.h"
#include "estimator/readers/pipeline.h"
#include "estimator/readers/position_limit.h"
#include "estimator/readers/resolve_auto.h"

namespace memfathom {
namespace {

// Files that only name their model, by a name that nothing here explains. A batch line is refused
// where its job is read.
void require_model(const JobInput& input) {
  if (input.files.files.empty() || has_model(input.document)) return;
  std::string which = "the files say how to train, but not which model";
  for (const ParsedFile& parsed : input.files.files) {
    if (!parsed.base_model.empty())
      which = fmt::format(
          "{} names the model {}, which is no preset, no folder here and not in the local Hugging "
          "Face cache",
          parsed.file, parsed.base_model);
  }
  throw Error(ErrorKind::kInput,
              which +
                  "; add --model FOLDER with its config.json, --model PRESET (memfathom models "
                  "lists them) or --total-params 8.0");
}

}  // namespace

void complete(JobInput& input, const CompletionOptions& options) {
  complete_builtin_family(input.document, input.files.assumptions);
  require_model(input);
  complete_model_names(input.document, huggingface_cache(), input.files.assumptions);
  replace_by_language_model(input.document, input.files);
  if (!options.sets_precision) keep_stored_type(input.files.files, input.document, input.files);
  resolve_auto_values(input.files.files, input.document, input.files);
  if (input.has_foreign_files()) assume_length(input.document, input.files.assumptions);
  select_autoencoder_part(input.files.files, input.document);
  if (options.frozen_copy) {
    const Patch patch = strategy_patch("frozen-copy", read_job(input.document));
    input.document = patched(std::move(input.document), patch);
  }
  input.job = read_job(input.document);
}

JobInput read_job_file(const std::string& path) {
  JobInput input;
  input.files = merge_files(read_path(path));
  input.document = input.files.document;
  complete(input);
  return input;
}

JobInput complete_job(Node document) {
  JobInput input;
  input.document = std::move(document);
  complete(input);
  return input;
}

bool JobInput::has_foreign_files() const {
  return std::any_of(files.files.begin(), files.files.end(), [](const ParsedFile& parsed) {
    return parsed.format != FileFormat::kJob && parsed.format != FileFormat::kModelConfig;
  });
}

void JobInput::annotate(Estimate& estimate) const {
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(estimate.assumptions, files.assumptions);
  if (std::string sentence = unspecified_settings(document, job); !sentence.empty())
    estimate.assumptions.push_back(std::move(sentence));
  append(estimate.not_modelled, files.not_modelled);
  append(estimate.warnings, files.warnings);
  if (std::string sentence = position_limit_warning(document, job.model); !sentence.empty())
    estimate.warnings.push_back(std::move(sentence));
}

}  // namespace memfathom
