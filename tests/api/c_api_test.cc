// The C interface as a caller sees it: through the shared library alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "memfathom/memfathom.h"

namespace {

using nlohmann::json;

struct Answer {
  memfathom_status status = MEMFATHOM_OK;
  std::string text;

  json parsed() const { return json::parse(text); }
};

template <typename F>
Answer ask(F call) {
  char* text = nullptr;
  Answer answer;
  answer.status = call(&text);
  if (text != nullptr) answer.text = text;
  memfathom_free(text);
  return answer;
}

class CApiTest : public testing::Test {
 protected:
  void SetUp() override {
    const Answer opened = ask([&](char** result) {
      return memfathom_open(R"({"database": null, "live_gpus": false})", &session_, result);
    });
    ASSERT_EQ(opened.status, MEMFATHOM_OK) << opened.text;
    EXPECT_EQ(opened.text, "");
  }
  void TearDown() override { memfathom_close(session_); }

  Answer estimate(const std::string& request) const {
    return ask(
        [&](char** result) { return memfathom_estimate(session_, request.c_str(), result); });
  }

  memfathom_session* session_ = nullptr;
};

constexpr const char* kJob =
    R"({"model": {"preset": "gpt2"}, "training": {"sequence_length": 256, "batch_size": 2}, "target": {"gpu": "rtx-4090"}})";

TEST_F(CApiTest, EstimatesAJob) {
  const Answer answer = estimate(kJob);
  ASSERT_EQ(answer.status, MEMFATHOM_OK) << answer.text;
  const json result = answer.parsed();
  EXPECT_EQ(result["schema"], "memfathom.estimate/1");
  EXPECT_EQ(result["verdict"]["status"], "fits");
  EXPECT_EQ(result["parameters"]["total"], 124439808);
}

TEST_F(CApiTest, ARequestSetsKeysOverItsJob) {
  const json request{{"job", "model: {preset: gpt2}\ntraining: {sequence_length: 256}\n"},
                     {"set", {{"training.batch_size", 2}, {"target.gpu", "rtx-4090"}}},
                     {"explain", true}};
  const Answer answer = estimate(request.dump());
  ASSERT_EQ(answer.status, MEMFATHOM_OK) << answer.text;
  const json result = answer.parsed();
  EXPECT_EQ(result["totals"], estimate(kJob).parsed()["totals"]);
  EXPECT_FALSE(result["explanation"].empty());
}

TEST_F(CApiTest, BoundsTheCacheOfAGenerationThatDoesNotFit) {
  const json request{{"model", {{"preset", "gpt2"}}},
                     {"training",
                      {{"mode", "generate"},
                       {"batch_size", 64},
                       {"sequence_length", 16},
                       {"new_tokens", 1000},
                       {"precision", "bf16"}}},
                     {"target", {{"gpu", "a100-80gb"}, {"memory", "2GiB"}}}};
  const json result = estimate(request.dump()).parsed();
  EXPECT_EQ(result["verdict"]["status"], "does_not_fit");
  const json& totals = result["totals"];
  EXPECT_LE(totals["reserved_peak_bytes"].get<double>(),
            2.0 * totals["allocated_peak_bytes"].get<double>());
}

TEST_F(CApiTest, ReadsFilesOfOtherToolsByTheirContents) {
  const json config{{"model_type", "gpt2"}, {"n_embd", 768},       {"n_layer", 12},
                    {"n_head", 12},         {"vocab_size", 50257}, {"n_positions", 1024}};
  const json arguments{{"output_dir", "out"}, {"per_device_train_batch_size", 2}};
  const json request{{"files",
                      {{{"name", "config"}, {"text", config.dump()}},
                       {{"name", "TrainingArguments"}, {"text", arguments.dump()}}}},
                     {"set",
                      {{"training.sequence_length", 256},
                       {"training.optimizer", "adamw"},  // the Trainer's own is fused
                       {"target.gpu", "rtx-4090"}}}};
  const Answer answer = estimate(request.dump());
  ASSERT_EQ(answer.status, MEMFATHOM_OK) << answer.text;
  EXPECT_EQ(answer.parsed()["totals"], estimate(kJob).parsed()["totals"]);
}

TEST_F(CApiTest, NamesTheContentsThatItCannotRead) {
  const auto error_of = [&](const json& entry) {
    const Answer answer = estimate(json{{"files", {entry}}}.dump());
    EXPECT_EQ(answer.status, MEMFATHOM_INPUT) << answer.text;
    return answer.parsed().value("error", "");
  };
  EXPECT_THAT(error_of({{"name", "my arguments"}, {"text", "{\"a\": "}}),
              testing::HasSubstr("my arguments"));
  EXPECT_THAT(error_of({{"name", "x"}, {"txt", "{}"}}), testing::HasSubstr("text"));
  EXPECT_THAT(error_of({{"name", "x"}}), testing::HasSubstr("text"));
}

TEST_F(CApiTest, ShowsTheJobThatFilesWereReadAs) {
  const json arguments{{"output_dir", "out"}, {"per_device_train_batch_size", 2}};
  const json request{{"files", {{{"name", "arguments"}, {"text", arguments.dump()}}}},
                     {"set", {{"model.preset", "gpt2"}, {"training.sequence_length", 256}}},
                     {"document", true}};
  const json answer = estimate(request.dump()).parsed();
  EXPECT_EQ(answer["document"]["training"]["batch_size"], 2) << answer;
  EXPECT_EQ(estimate(answer["document"].dump()).parsed()["totals"], answer["totals"]);
}

TEST_F(CApiTest, DrawsTheChartsOfTheReport) {
  const json plain = estimate(json{{"job", json::parse(kJob)}}.dump()).parsed();
  json drawn = estimate(json{{"job", json::parse(kJob)}, {"charts", true}}.dump()).parsed();
  EXPECT_FALSE(plain.contains("charts"));
  EXPECT_THAT(drawn["charts"]["peak"].get<std::string>(), testing::StartsWith("<svg"));
  EXPECT_THAT(drawn["charts"]["timeline"].get<std::string>(), testing::HasSubstr("reserved"));
  drawn.erase("charts");
  EXPECT_EQ(drawn, plain);
}

TEST_F(CApiTest, ListsTheTimelineWhosePeakIsTheEstimates) {
  const json answer =
      estimate(json{{"job", json::parse(kJob)}, {"timeline", true}, {"yaml", true}}.dump())
          .parsed();
  const json& timeline = answer["timeline"];
  std::int64_t peak = 0;
  for (const json& point : timeline["points"]) {
    ASSERT_EQ(point["live"].size(), timeline["components"].size());
    ASSERT_LT(point["phase"], timeline["phases"].size());
    peak = std::max(peak, std::accumulate(point["live"].begin(), point["live"].end(),
                                          std::int64_t{}, [](std::int64_t sum, const json& bytes) {
                                            return sum + bytes.get<std::int64_t>();
                                          }));
  }
  EXPECT_EQ(peak, answer["totals"]["allocated_peak_bytes"]);
  const json again = estimate(json{{"job", answer["yaml"]}}.dump()).parsed();
  EXPECT_EQ(again["totals"], answer["totals"]) << answer["yaml"];
}

TEST_F(CApiTest, TriesNoChangesIfNotAsked) {
  json request{{"job", json::parse(kJob)}, {"set", {{"target.memory", "1GiB"}}}};
  EXPECT_FALSE(estimate(request.dump()).parsed()["suggestions"].empty());
  request["suggest"] = false;
  EXPECT_TRUE(estimate(request.dump()).parsed()["suggestions"].empty());
}

TEST_F(CApiTest, ReadsAnOutOfMemoryMessage) {
  const json log{{"text",
                  "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                  "23.69 GiB of which 1.00 GiB is free."}};
  char* text = nullptr;
  EXPECT_EQ(memfathom_oom(session_, log.dump().c_str(), &text), MEMFATHOM_OK) << text;
  EXPECT_EQ(json::parse(text)["tried_bytes"], std::int64_t{2} << 30);
  memfathom_free(text);
  EXPECT_EQ(memfathom_oom(session_, R"({"text": "all is well"})", &text), MEMFATHOM_INPUT);
  EXPECT_THAT(text, testing::HasSubstr("paste the whole message"));
  memfathom_free(text);
}

TEST_F(CApiTest, SaysWhetherAJobMayStart) {
  const auto admit = [&](const json& request) {
    char* text = nullptr;
    EXPECT_EQ(memfathom_admit(session_, request.dump().c_str(), &text), MEMFATHOM_OK) << text;
    const json answer = json::parse(text);
    memfathom_free(text);
    EXPECT_EQ(answer["schema"], "memfathom.admission/1");
    return answer["decision"].get<std::string>();
  };
  const json job = json::parse(kJob);
  EXPECT_EQ(admit({{"job", job}, {"gpu", "h100-80gb"}}), "allow");
  EXPECT_EQ(
      admit({{"command",
              {"python", "train.py", "--model_name_or_path", "meta-llama/Llama-2-7b-hf", "--bf16"}},
             {"gpu", "t4"}}),
      "refuse");
  EXPECT_EQ(admit({{"job", {{"model", job["model"]}, {"training", job["training"]}}}}), "note");
  char* text = nullptr;
  for (const char* request : {"{}", R"({"job": {"model": {"preset": "gpt2"}}, "probability": 2})",
                              R"({"job": {"model": {"preset": "gpt2"}}, "gpus": 0})"}) {
    EXPECT_EQ(memfathom_admit(session_, request, &text), MEMFATHOM_INPUT) << request;
    memfathom_free(text);
  }
}

TEST_F(CApiTest, AMistakeIsAnErrorObjectWithOneSentence) {
  for (const char* request :
       {"", "{", "[]", "3", "{\"model\": {\"preset\": \"lama\"}}", "{\"jobb\": {}}", "{\"job\": 3}",
        "{\"files\": [\"/nonexistent\"]}", "{\"job\": {\"modell\": 1}}"}) {
    const Answer answer = estimate(request);
    EXPECT_EQ(answer.status, MEMFATHOM_INPUT) << request << answer.text;
    const json error = answer.parsed();
    EXPECT_EQ(error["schema"], "memfathom.error/1") << request;
    EXPECT_EQ(error["kind"], "input") << request;
    EXPECT_FALSE(error["error"].get<std::string>().empty()) << request;
  }
}

TEST_F(CApiTest, NullArgumentsAreErrorsAndNotCrashes) {
  EXPECT_EQ(ask([&](char** r) { return memfathom_estimate(nullptr, kJob, r); }).status,
            MEMFATHOM_INPUT);
  EXPECT_EQ(ask([&](char** r) { return memfathom_estimate(session_, nullptr, r); }).status,
            MEMFATHOM_INPUT);
  EXPECT_EQ(memfathom_estimate(session_, kJob, nullptr), MEMFATHOM_INPUT);
  EXPECT_EQ(ask([&](char** r) { return memfathom_open("{}", nullptr, r); }).status,
            MEMFATHOM_INPUT);
  memfathom_close(nullptr);
  memfathom_free(nullptr);
}

TEST_F(CApiTest, OpeningWithAnUnknownOptionNamesTheNearestOne) {
  memfathom_session* session = nullptr;
  const Answer answer =
      ask([&](char** r) { return memfathom_open(R"({"databse": null})", &session, r); });
  EXPECT_EQ(answer.status, MEMFATHOM_INPUT);
  EXPECT_EQ(session, nullptr);
  EXPECT_NE(answer.text.find("database"), std::string::npos) << answer.text;
}

TEST_F(CApiTest, ABatchAnswersEveryLineInOrder) {
  const std::string lines =
      std::string(kJob) + "\n\nnonsense\n{\"id\": \"b\", \"job\": " + kJob + "}\n";
  const Answer answer = ask([&](char** result) {
    return memfathom_estimate_batch(session_, lines.c_str(), nullptr, result);
  });
  ASSERT_EQ(answer.status, MEMFATHOM_OK);
  std::vector<json> results;
  for (std::size_t start = 0; start < answer.text.size();) {
    const std::size_t end = answer.text.find('\n', start);
    results.push_back(json::parse(answer.text.substr(start, end - start)));
    start = end + 1;
  }
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0]["schema"], "memfathom.estimate/1");
  EXPECT_EQ(results[1]["schema"], "memfathom.error/1");
  EXPECT_NE(results[1]["error"].get<std::string>().find("request:3"), std::string::npos)
      << results[1];
  EXPECT_EQ(results[2]["id"], "b");
}

TEST_F(CApiTest, RecommendsComparesAndLists) {
  const Answer advice = ask([&](char** r) { return memfathom_recommend(session_, kJob, r); });
  ASSERT_EQ(advice.status, MEMFATHOM_OK) << advice.text;
  EXPECT_EQ(advice.parsed()["schema"], "memfathom.recommend/1");
  const json request{{"job", json::parse(kJob)},
                     {"strategies", {"checkpointing"}},
                     {"patches", {{"half", {{"training", {{"batch_size", 1}}}}}}}};
  const Answer comparison =
      ask([&](char** r) { return memfathom_compare(session_, request.dump().c_str(), r); });
  ASSERT_EQ(comparison.status, MEMFATHOM_OK) << comparison.text;
  EXPECT_EQ(comparison.parsed()["strategies"].size(), 3U);
  const Answer models = ask([&](char** r) { return memfathom_models(session_, r); });
  EXPECT_GT(models.parsed()["models"].size(), 100U);
  const Answer gpus = ask([&](char** r) { return memfathom_gpus(session_, nullptr, r); });
  const Answer fitting = ask([&](char** r) { return memfathom_gpus(session_, kJob, r); });
  EXPECT_GE(gpus.parsed()["gpus"].size(), fitting.parsed()["gpus"].size());
  EXPECT_FALSE(fitting.parsed()["gpus"].empty());
  const Answer accuracy =
      ask([&](char** r) { return memfathom_accuracy(session_, "{\"data\": \"/none\"}", r); });
  EXPECT_EQ(accuracy.status, MEMFATHOM_INPUT);
}

TEST_F(CApiTest, ASessionAnswersSeveralThreadsAlike) {
  const std::string expected = estimate(kJob).text;
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) threads.emplace_back([&] { text = estimate(kJob).text; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, expected);
}

TEST(CApiVersionTest, IsTheProjects) { EXPECT_STREQ(memfathom_version(), "0.1.0"); }

}  // namespace
