// SlimAnswers: answers of a batch in a few keys, each different job estimated once.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/document.h"
#include "estimator/json/batch_line.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

struct SlimLine {
  std::string text;
  int number = 0;
};

// Remembers the answers of up to 100,000 different jobs; two lines are the same job if their JSON
// is equal but for `id` and the order of keys. One thread may use it; it uses all cores.
class SlimAnswers {
 public:
  // `read` completes a line's job; `name` is the file of the lines.
  SlimAnswers(std::function<JobInput(Node)> read, std::string name, const Estimator& estimator)
      : read_(std::move(read)), name_(std::move(name)), estimator_(estimator) {}

  // In the order of the lines.
  std::vector<BatchAnswer> answer(const std::vector<SlimLine>& lines);
  std::int64_t estimated() const { return estimated_; }  // different jobs so far

 private:
  struct Known {
    std::string figures;  // the line's JSON from the first figure on
    bool undecided = false;
  };
  Known estimated_job(const Node& job) const;

  std::function<JobInput(Node)> read_;
  std::string name_;
  const Estimator& estimator_;
  std::unordered_map<std::string, Known> known_;
  std::int64_t estimated_ = 0;
};

}  // namespace memfathom
