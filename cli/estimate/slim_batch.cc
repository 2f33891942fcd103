#include "cli/estimate/slim_batch.h"

#include <fmt/format.h>

#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "core/error.h"
#include "core/parallel_for.h"
#include "estimator/answer/estimate.h"
#include "estimator/json/estimate_json.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxKnown = 100'000;

// A line as it is read, and its error if it cannot be answered.
struct Question {
  std::string id, key;
  Node job;
  std::optional<BatchAnswer> error;
};

template <typename Task>
void guarded(Question& question, const Task& task) {
  const auto refuse = [&](const std::string& sentence, ErrorKind kind) {
    question.error = BatchAnswer{error_json_line(question.id, sentence, kind), true, false};
  };
  try {
    task();
  } catch (const Error& error) {
    refuse(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    refuse("this machine has no memory left for this job; close other programs or ask for less",
           ErrorKind::kOutOfMemory);
  } catch (const std::length_error&) {
    refuse("this job has more parts than can be listed; ask for less", ErrorKind::kInput);
  }
}

void read_question(const SlimLine& line, const std::string& name, Question& question) {
  guarded(question, [&] {
    const Node document = parse_json(line.text, name, line.number);
    const Node* const id = document.is_map() ? document.find("id") : nullptr;
    if (id != nullptr) question.id = id->is_string() ? id->as_string() : id->shown();
    const Node* const inner = document.is_map() ? document.find("job") : nullptr;
    question.job = inner != nullptr ? *inner : document;
    if (question.job.is_map()) question.job.erase("id");
    question.key = to_json(question.job).dump();
  });
}

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

}  // namespace

SlimAnswers::Known SlimAnswers::estimated_job(const Node& job) const {
  const JobInput input = read_(job);
  Estimate estimate = estimator_.estimate_as_run(input.job, false);
  input.annotate(estimate);
  const json figures{{"device_peak_bytes", estimate.totals.device_peak.count()},
                     {"device_low_bytes", estimate.totals.device_low.count()},
                     {"device_high_bytes", estimate.totals.device_high.count()},
                     {"verdict", to_string(estimate.verdict.status)},
                     {"probability_fits", or_null(estimate.verdict.probability_fits)},
                     {"calibration", estimate.calibration.name}};
  return {figures.dump().substr(1), is_undecided(estimate)};
}

std::vector<BatchAnswer> SlimAnswers::answer(const std::vector<SlimLine>& lines) {
  std::vector<Question> questions(lines.size());
  parallel_for(lines.size(), [&](std::size_t i) { read_question(lines[i], name_, questions[i]); });
  if (known_.size() > kMaxKnown) known_.clear();
  // The first question of each job that is not known yet answers for the others.
  std::unordered_map<std::string, std::size_t> firsts;
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (questions[i].error || known_.contains(questions[i].key)) continue;
    if (firsts.emplace(questions[i].key, i).second) asked.push_back(i);
  }
  std::vector<Known> found(asked.size());
  parallel_for(asked.size(), [&](std::size_t k) {
    guarded(questions[asked[k]], [&] { found[k] = estimated_job(questions[asked[k]].job); });
  });
  for (std::size_t k = 0; k < asked.size(); ++k) {
    if (!questions[asked[k]].error) known_.emplace(questions[asked[k]].key, std::move(found[k]));
  }
  estimated_ += static_cast<std::int64_t>(asked.size());
  std::vector<BatchAnswer> answers;
  for (Question& question : questions) {
    const auto known = known_.find(question.key);
    if (!question.error && known == known_.end()) {
      // Equal to a job that failed: it fails again, under its own id.
      guarded(question, [&] { estimated_job(question.job); });
    }
    if (question.error) {
      answers.push_back(std::move(*question.error));
      continue;
    }
    answers.push_back(
        {fmt::format("{{\"id\":{},{}",
                     json(question.id).dump(-1, ' ', false, json::error_handler_t::replace),
                     known->second.figures),
         false, known->second.undecided});
  }
  return answers;
}

}  // namespace memfathom
