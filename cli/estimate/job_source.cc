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
  if (!batch_ || is_whole_number(*batch_)) return std::nullopt;
  if (file_) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--batch {} answers the jobs of that file, and {} is one more; put it "
                            "in the file or leave --batch out",
                            *batch_, *file_));
  }
  return batch_;
}

namespace {

// Files that only name their model, by a name that nothing here explains. A line is refused where
// its job is read.
void require_model(const JobInput& input) {
  if (input.files.files.empty() || says_model(input.document)) return;
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

// What --from names, then what --model does.
std::vector<Reading> JobSource::other_files() const {
  std::vector<Reading> readings = read_paths(from_);
  if (const std::optional<std::string> model = options_.model_path()) {
    for (Reading& reading : read_path(*model)) readings.push_back(std::move(reading));
  }
  return readings;
}

JobInput JobSource::read(const std::string& command) const {
  if (!given()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} needs a job: a YAML or JSON file, --from FILE..., or --model NAME "
                            "(see memfathom estimate --help)",
                            command));
  }
  std::vector<Reading> readings;
  if (file_) readings = read_path(*file_);
  for (Reading& reading : other_files()) readings.push_back(std::move(reading));
  JobInput input;
  input.files = merge_files(std::move(readings));
  input.document = options_.document(input.files.document);
  if (batch_ && is_whole_number(*batch_))
    input.document.assign("training.batch_size", Node::integer(std::stoll(*batch_)));
  complete(input);
  return input;
}

std::function<JobInput(Node)> JobSource::reader() const {
  return [this, others = other_files(), edit = options_.editor()](Node line) {
    JobInput input;
    if (others.empty()) {
      input.document = edit(std::move(line));
    } else {
      std::vector<Reading> readings(1);
      readings.front().file = line.where();
      readings.front().content = std::move(line);
      readings.insert(readings.end(), others.begin(), others.end());
      input.files = merge_files(std::move(readings));
      input.document = edit(input.files.document);
    }
    complete(input);
    return input;
  };
}

void JobSource::complete(JobInput& input) const {
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
}

JobInput read_job_file(const std::string& path) { return JobSource(path).read("a job"); }

JobInput complete_job(Node document) { return JobSource().reader()(std::move(document)); }

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
