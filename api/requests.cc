#include "api/requests.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/chart.h"
#include "core/document.h"
#include "core/host_memory.h"
#include "core/parallel_for.h"
#include "core/yaml_text.h"
#include "estimator/accuracy/accuracy.h"
#include "estimator/command_line/command_line.h"
#include "estimator/job/patch.h"
#include "estimator/json/answer_json.h"
#include "estimator/json/batch_line.h"
#include "estimator/json/comparison_json.h"
#include "estimator/json/estimate_json.h"
#include "estimator/json/lists_json.h"
#include "estimator/json/oom_json.h"
#include "estimator/json/timeline_json.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/oom_message.h"
#include "estimator/readers/read_text.h"
#include "estimator/session/admission.h"
#include "estimator/session/answer_job.h"
#include "estimator/session/compare_strategies.h"
#include "estimator/session/gpus_for_job.h"
#include "estimator/session/job_input.h"

namespace memfathom {
namespace {

constexpr const char* kRequest = "request";

// A bare job is also a request: it has a model; other requests have a job, files or a command.
bool is_bare_job(const Node& request) {
  return request.is_map() && request.find("model") != nullptr && request.find("job") == nullptr &&
         request.find("files") == nullptr && request.find("command") == nullptr;
}

void check_request(const Node& request, std::initializer_list<std::string_view> further) {
  std::vector<std::string_view> keys{"job", "files", "command", "set"};
  keys.insert(keys.end(), further.begin(), further.end());
  request.check_keys(keys);
}

bool flag_at(const Node& request, std::string_view key) {
  const Node* value = request.find(key);
  return value != nullptr && value->as_bool();
}

std::vector<std::string> strings_at(const Node& request, std::string_view key) {
  std::vector<std::string> values;
  if (const Node* list = request.find(key)) {
    for (const Node& item : list->items()) values.push_back(item.as_string());
  }
  return values;
}

// An entry of `files`: a path, or {"name", "text"}, the contents of a file.
std::vector<ParsedFile> read_entry(const Node& entry) {
  if (!entry.is_map()) return read_source(entry.as_string());
  entry.check_keys({"name", "text"});
  return read_text(entry.at("text").as_string(), entry.at("name").as_string());
}

// `job`: a map, or the text of a job file. `files`: job files and other tools' files.
// `command`: the training command as a list of words, or a shell script's text. `set`: dotted keys,
// which override all of them.
// Not completed yet.
JobInput read_parts(const Node& request, CompletionOptions& options) {
  std::vector<ParsedFile> files;
  if (const Node* job = request.find("job")) {
    ParsedFile& given = files.emplace_back();
    given.content = job->is_string() ? parse_document(job->as_string(), kRequest) : *job;
    given.file = kRequest;
  }
  if (const Node* entries = request.find("files")) {
    for (const Node& entry : entries->items()) {
      for (ParsedFile& parsed : read_entry(entry)) files.push_back(std::move(parsed));
    }
  }
  if (const Node* command = request.find("command")) {
    const std::vector<ParsedFile> read = command->is_string()
                                             ? read_script_text(command->as_string(), kRequest, 0)
                                             : read_command_line(strings_at(request, "command"));
    files.insert(files.end(), read.begin(), read.end());
  }
  if (files.empty())
    request.refuse("it must have a job, files that describe one, or the command that runs it");
  JobInput input;
  input.files = merge_files(std::move(files));
  input.document = input.files.document;
  if (const Node* set = request.find("set")) {
    for (const Node& value : set->entries()) {
      input.document.assign(value.key(), value);
      if (value.key() == "training.precision") options.sets_precision = true;
    }
  }
  return input;
}

JobInput read_request_job(const Node& request) {
  if (is_bare_job(request)) return complete_job(request);
  CompletionOptions options;
  JobInput input = read_parts(request, options);
  complete(input, options);
  return input;
}

}  // namespace

std::string estimate_request(std::string_view text, const Estimator& estimator) {
  const Node request = parse_json(text, kRequest);
  EstimateRequest options;
  if (!is_bare_job(request)) {
    check_request(
        request, {"explain", "rule_of_thumb", "suggest", "charts", "document", "yaml", "timeline"});
    options = {.explains = flag_at(request, "explain"),
               .rule_of_thumb = flag_at(request, "rule_of_thumb"),
               .suggests = request.find("suggest") == nullptr || flag_at(request, "suggest")};
  }
  const JobInput input = read_request_job(request);
  const EstimateAnswer answer = answer_estimate(input, options, estimator);
  nlohmann::ordered_json result = answer_json(answer, input);
  if (is_bare_job(request)) return to_text(result, kIndented);
  if (flag_at(request, "document")) result["document"] = to_json(input.document);
  if (flag_at(request, "yaml")) result["yaml"] = to_yaml(input.document);
  const bool draws = flag_at(request, "charts");
  const bool lists = flag_at(request, "timeline");
  if (!draws && !lists) return to_text(result, kIndented);
  const Timeline timeline = estimator.timeline(input.job);
  if (draws) {
    result["charts"] = {{"peak", peak_chart(answer.estimate)},
                        {"timeline", timeline_chart(timeline, answer.estimate.verdict.available)}};
  }
  if (lists) result["timeline"] = timeline_json(timeline);
  return to_text(result, kIndented);
}

std::string admission_request(std::string_view text, const Estimator& estimator) {
  const Node request = parse_json(text, kRequest);
  check_request(request, {"gpu", "gpus", "probability"});
  constexpr std::int64_t kMaxGpus = 1 << 20;
  AdmissionQuestion question;
  if (const Node* gpu = request.find("gpu")) question.gpu = gpu->as_string();
  if (const Node* gpus = request.find("gpus")) question.gpus = gpus->as_int(1, kMaxGpus);
  if (const Node* probability = request.find("probability")) {
    question.probability = probability->as_number();
    if (question.probability < 0.5 || question.probability >= 1)
      probability->refuse("it must be at least 0.5 and below 1: above it a job is refused");
  }
  CompletionOptions unused;
  JobInput input = read_parts(request, unused);
  const Admission admission = judge_admission(input, question, estimator);
  return nlohmann::ordered_json{{"schema", "memfathom.admission/1"},
                                {"decision", enum_name(admission.decision)},
                                {"sentence", admission.sentence}}
      .dump();
}

std::string batch_request(std::string_view lines, std::string_view options_text,
                          const Estimator& estimator) {
  const Node options = parse_json(options_text, "options");
  options.check_keys({"explain"});
  const bool explains = flag_at(options, "explain");
  std::vector<std::string> jobs;
  std::vector<int> numbers;
  int number = 0;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    jobs.emplace_back(line);
    numbers.push_back(number);
  }
  std::vector<std::string> answers(jobs.size());
  parallel_for(jobs.size(), [&](std::size_t i) {
    answers[i] = answer_line(jobs[i], kRequest, numbers[i], complete_job, explains, estimator).text;
  });
  std::string text;
  for (const std::string& answer : answers) text += answer + '\n';
  return text;
}

std::string recommend_request(std::string_view text, const Estimator& estimator) {
  const Node request = parse_json(text, kRequest);
  RecommendOptions options;
  if (!is_bare_job(request)) {
    check_request(request, {"probability", "frontier"});
    options.frontier = flag_at(request, "frontier");
    if (const Node* probability = request.find("probability")) {
      options.probability = probability->as_number();
      if (*options.probability <= 0 || *options.probability >= 1)
        probability->refuse("it must be between 0 and 1, for example 0.95");
    }
  }
  const JobInput input = read_request_job(request);
  if (estimator.live_target(input.job) != nullptr) options.host_memory = host_memory();
  return to_text(answer_json(answer_recommend(input, options, estimator), input), kIndented);
}

std::string compare_request(std::string_view text, const Estimator& estimator) {
  const Node request = parse_json(text, kRequest);
  CompareRequest comparison;
  if (!is_bare_job(request)) {
    check_request(request, {"strategies", "patches", "grid", "targets", "ranked"});
    if (request.find("strategies") != nullptr)
      comparison.strategies = strings_at(request, "strategies");
    if (const Node* patches = request.find("patches")) {
      for (const Node& patch : patches->entries())
        comparison.patches.push_back({std::string(patch.key()), patch_of(patch), {}});
    }
    comparison.grid = strings_at(request, "grid");
    if (!comparison.grid.empty() && (comparison.strategies || !comparison.patches.empty()))
      request.at("grid").refuse("it cannot be combined with strategies or patches");
    comparison.targets = strings_at(request, "targets");
    comparison.ranked = flag_at(request, "ranked");
  }
  const JobInput input = read_request_job(request);
  return to_text(comparison_json(compare_strategies(input, comparison, estimator)), kIndented);
}

std::string models_request() { return to_text(models_json(model_catalogue()), kIndented); }

std::string gpus_request(std::string_view text, const Estimator& estimator) {
  const Node request = parse_json(text, kRequest);
  const bool has_job = is_bare_job(request) || !request.entries().empty();
  if (!has_job) return to_text(gpus_json(list_gpus()), kIndented);
  if (!is_bare_job(request)) check_request(request, {});
  return to_text(gpus_json(gpus_for_job(read_request_job(request), estimator)), kIndented);
}

std::string oom_request(std::string_view text) {
  const Node request = parse_json(text, kRequest);
  request.check_keys({"text"});
  const std::optional<OomMessage> message = find_oom_message(request.at("text").as_string());
  if (!message)
    request.at("text").refuse(
        "there is no out-of-memory message of PyTorch, JAX, vLLM or a CUDA library in it; paste "
        "the whole message");
  return to_text(oom_json(*message), kIndented);
}

std::string accuracy_request(std::string_view text, const Estimator& estimator) {
  const Node request = parse_json(text, kRequest);
  request.check_keys({"data", "only", "groups", "anchors", "folds"});
  AccuracyRequest accuracy;
  accuracy.data = request.at("data").as_string();
  if (const Node* only = request.find("only")) accuracy.filter.only = only->as_string();
  accuracy.by_group = flag_at(request, "groups");
  const auto count_at = [&](std::string_view key, std::int64_t min) {
    const Node* value = request.find(key);
    return value == nullptr ? std::size_t{0}
                            : static_cast<std::size_t>(value->as_int(min, 1 << 20));
  };
  accuracy.anchors = count_at("anchors", 1);
  accuracy.folds = count_at("folds", 2);
  if (accuracy.anchors > 0 && accuracy.folds > 0)
    request.at("folds").refuse(
        "anchors and folds calibrate in two different ways; use one of them");
  return accuracy_json(measure_accuracy(accuracy, estimator)).dump(kIndented);
}

}  // namespace memfathom
