#include "cli/estimate/job_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "estimator/advise/changes.h"
#include "estimator/job/describe.h"
#include "estimator/job/read_job.h"
#include "estimator/readers/builtin_family.h"
#include "estimator/readers/language_model_part.h"
#include "estimator/readers/named_model.h"
#include "estimator/readers/pipeline.h"
#include "estimator/readers/position_limit.h"
#include "estimator/readers/resolve_auto.h"

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

// What --from names, then what --model does.
std::vector<ParsedFile> JobSource::other_files() const {
  std::vector<ParsedFile> parsed_files = read_paths(from_);
  if (const std::optional<std::string> model = options_.model_path()) {
    for (ParsedFile& parsed : read_path(*model)) parsed_files.push_back(std::move(parsed));
  }
  return parsed_files;
}

JobInput JobSource::read(const std::string& command) const {
  if (!given()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} needs a job: a YAML or JSON file, --from FILE..., or --model NAME "
                            "(see memfathom estimate --help)",
                            command));
  }
  std::vector<ParsedFile> parsed_files;
  if (file_) parsed_files = read_path(*file_);
  for (ParsedFile& parsed : other_files()) parsed_files.push_back(std::move(parsed));
  JobInput input;
  input.files = merge_files(std::move(parsed_files));
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
      std::vector<ParsedFile> parsed_files(1);
      parsed_files.front().file = line.where();
      parsed_files.front().content = std::move(line);
      parsed_files.insert(parsed_files.end(), others.begin(), others.end());
      input.files = merge_files(std::move(parsed_files));
      input.document = edit(input.files.document);
    }
    complete(input);
    return input;
  };
}

void JobSource::complete(JobInput& input) const {
  complete_builtin_family(input.document, input.files.assumptions);
  require_model(input);
  complete_model_names(input.document, huggingface_cache(), input.files.assumptions);
  replace_by_language_model(input.document, input.files);
  if (!options_.sets_precision()) keep_stored_type(input.files.files, input.document, input.files);
  resolve_auto_values(input.files.files, input.document, input.files);
  if (input.has_foreign_files()) assume_length(input.document, input.files.assumptions);
  select_autoencoder_part(input.files.files, input.document);
  if (frozen_copy_) {
    const Patch patch = strategy_patch("frozen-copy", read_job(input.document));
    input.document = patched(std::move(input.document), patch);
  }
  input.job = read_job(input.document);
}

JobInput read_job_file(const std::string& path) { return JobSource(path).read("a job"); }

JobInput complete_job(Node document) { return JobSource().reader()(std::move(document)); }

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
  if (std::string sentence = position_limit_warning(document); !sentence.empty())
    estimate.warnings.push_back(std::move(sentence));
}

}  // namespace memfathom
