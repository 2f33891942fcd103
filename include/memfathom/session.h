// Session: asks memfathom about jobs. This is the C++ interface of libmemfathom: inline code over
// memfathom/memfathom.h, so that a program and the library need not agree on compiler or standard
// library.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     int main() {
//       const memfathom::Session session;
//       memfathom::Job job("model: {preset: llama-2-7b}");
//       job.set("training.sequence_length", 2048).set("target.gpu", "a100-80gb");
//       const memfathom::Estimate estimate = session.estimate(job);
//       std::cout << to_string(estimate.totals.device_peak) << '\n';
//     }
//
// A session reads calibrations once, when it is opened. It may be used from several threads. Every
// call throws memfathom::Error where it has no answer, and std::bad_alloc.
#pragma once

#include <memfathom/accuracy.h>
#include <memfathom/compare.h>
#include <memfathom/error.h>
#include <memfathom/estimate.h>
#include <memfathom/job.h>
#include <memfathom/lists.h>
#include <memfathom/memfathom.h>
#include <memfathom/recommend.h>
#include <memfathom/results.h>

#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace memfathom {
inline namespace v0 {

struct SessionOptions {
  bool user_database = true;            // calibrations of the user's own database
  std::optional<std::string> database;  // of this one instead
  bool live_gpus = true;                // query this machine's GPUs where a job names no target
};

// One line of a batch: exactly one of the two is there.
struct BatchResult {
  std::optional<Estimate> estimate;
  std::optional<Error> error;
};

class Session {
 public:
  explicit Session(const SessionOptions& options = {}) {
    nlohmann::json json{{"live_gpus", options.live_gpus}};
    if (options.database) {
      json["database"] = *options.database;
    } else if (!options.user_database) {
      json["database"] = nullptr;
    }
    memfathom_session* opened = nullptr;
    ask([&](char** result) { return memfathom_open(json.dump().c_str(), &opened, result); });
    session_.reset(opened);
  }

  Estimate estimate(const Job& job, const EstimateOptions& options = {}) const {
    nlohmann::json request = job.request();
    if (options.explain) request["explain"] = true;
    return results::read_estimate(ask(memfathom_estimate, request));
  }

  // In order, computed on all cores. A job that cannot be answered has an error; the others are
  // answered.
  std::vector<BatchResult> estimate_batch(const std::vector<nlohmann::json>& jobs) const {
    std::string lines;
    for (const nlohmann::json& job : jobs) lines += job.dump() + '\n';
    const std::string text = ask([&](char** result) {
      return memfathom_estimate_batch(session_.get(), lines.c_str(), nullptr, result);
    });
    std::vector<BatchResult> results;
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = text.find('\n', start);
      const nlohmann::json json = nlohmann::json::parse(text.substr(start, end - start));
      BatchResult& result = results.emplace_back();
      if (json.contains("error")) {
        result.error = Error(results::error_kind(json.value("kind", "internal")), json["error"]);
      } else {
        result.estimate = results::read_estimate(json);
      }
      start = end + 1;
    }
    return results;
  }

  Recommendation recommend(const Job& job, const RecommendOptions& options = {}) const {
    nlohmann::json request = job.request();
    if (options.probability) request["probability"] = *options.probability;
    if (options.frontier) request["frontier"] = true;
    return results::read_recommendation(ask(memfathom_recommend, request));
  }

  Comparison compare(const Job& job, const CompareOptions& options = {}) const {
    nlohmann::json request = job.request();
    if (!options.strategies.empty()) request["strategies"] = options.strategies;
    if (!options.grid.empty()) request["grid"] = options.grid;
    if (!options.targets.empty()) request["targets"] = options.targets;
    if (options.ranked) request["ranked"] = true;
    return results::read_comparison(ask(memfathom_compare, request));
  }

  std::vector<Model> models() const {
    return results::read_models(nlohmann::json::parse(
        ask([&](char** result) { return memfathom_models(session_.get(), result); })));
  }

  // All GPUs, smallest memory first.
  std::vector<Gpu> gpus() const {
    return results::read_gpus(ask(memfathom_gpus, nlohmann::json::object()));
  }
  // Those that the job fits on.
  std::vector<Gpu> gpus(const Job& job) const {
    return results::read_gpus(ask(memfathom_gpus, job.request()));
  }

  // `data`: a file of measured jobs, or a folder of them.
  std::vector<AccuracyRow> accuracy(const std::string& data) const {
    return results::read_accuracy(ask(memfathom_accuracy, {{"data", data}}));
  }

 private:
  struct Close {
    void operator()(memfathom_session* session) const { memfathom_close(session); }
  };
  struct Free {
    void operator()(char* text) const { memfathom_free(text); }
  };

  template <typename F>
  static std::string ask(F call) {
    char* raw = nullptr;
    const memfathom_status status = call(&raw);
    const std::unique_ptr<char, Free> text(raw);
    if (status == MEMFATHOM_NO_MEMORY) throw std::bad_alloc();
    if (status != MEMFATHOM_OK) {
      const nlohmann::json error = nlohmann::json::parse(text ? text.get() : "{}");
      throw Error(results::error_kind(error.value("kind", "internal")),
                  error.value("error", "memfathom gave no reason"));
    }
    return text ? text.get() : std::string();
  }

  using Call = memfathom_status (*)(const memfathom_session*, const char*, char**);
  nlohmann::json ask(Call call, const nlohmann::json& request) const {
    return nlohmann::json::parse(
        ask([&](char** result) { return call(session_.get(), request.dump().c_str(), result); }));
  }

  std::unique_ptr<memfathom_session, Close> session_;
};

}  // namespace v0
}  // namespace memfathom
