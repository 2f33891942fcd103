#include "cli/fleet/admission.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "api/local_session.h"
#include "core/document.h"
#include "core/error.h"

namespace memfathom {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() : session_(SessionOptions{std::nullopt, false}) {}
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "admission-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Admission admitted(AdmissionRequest request) const {
    if (request.work_dir.empty()) request.work_dir = folder_.string();
    return admit(request, session_.estimator());
  }
  static AdmissionRequest request_of(std::string resources, std::string script) {
    AdmissionRequest request;
    request.resources = std::move(resources);
    request.script = std::move(script);
    request.script_name = "train.sh";
    return request;
  }

  LocalSession session_;
  std::filesystem::path folder_;
};

constexpr const char* kHopeless =
    "#!/bin/sh\npython train.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 "
    "--per_device_train_batch_size 8 --max_seq_length 2048\n";
constexpr const char* kSmall =
    "memfathom={\"model\": {\"preset\": \"gpt2\"}, \"training\": {\"batch_size\": 1, "
    "\"sequence_length\": 128, \"precision\": \"bf16\"}}";

TEST_F(AdmissionTest, RefusesAScriptThatCannotFit) {
  const Admission admission = admitted(request_of("gpu:rtx_4090:1", kHopeless));
  EXPECT_EQ(admission.decision, Decision::kRefuse) << admission.sentence;
  EXPECT_NE(admission.sentence.find("does not fit"), std::string::npos);
  EXPECT_NE(admission.sentence.find("rtx-4090"), std::string::npos) << admission.sentence;
  EXPECT_NE(admission.sentence.find("memfathom recommend"), std::string::npos)
      << admission.sentence;
}

TEST_F(AdmissionTest, NamesTheCheapestChangeIfThereIsTimeToFindIt) {
  const auto judged = [&](std::chrono::milliseconds advice) {
    JobInput input;
    input.document = parse_json(
        R"({"model": {"preset": "llama-2-7b"}, "training": {"batch_size": 8, "precision": "bf16",
            "sequence_length": 2048, "lora": {"rank": 8}}})",
        "job");
    const AdmissionQuestion question{.gpu = "a100-40gb", .advice = advice};
    return judge_admission(input, question, session_.estimator()).sentence;
  };
  EXPECT_NE(judged(std::chrono::minutes(2)).find("cheapest change with which it fits: "),
            std::string::npos);
  EXPECT_NE(judged(std::chrono::milliseconds(-1)).find("`memfathom recommend` finds changes"),
            std::string::npos);
}

TEST_F(AdmissionTest, LetsAJobThatFitsThrough) {
  AdmissionRequest request = request_of("gres:gpu:h100:1", kHopeless);
  request.comment = std::string("sweep 3 ") + kSmall;
  const Admission admission = admitted(request);
  EXPECT_EQ(admission.decision, Decision::kAllow) << admission.sentence;
}

TEST_F(AdmissionTest, LetsWhatItDoesNotUnderstandThroughWithANote) {
  const Admission admission = admitted(request_of("gpu:a100:1", "#!/bin/sh\n./my_simulation\n"));
  EXPECT_EQ(admission.decision, Decision::kNote);
  EXPECT_NE(admission.sentence.find("let through"), std::string::npos);
}

TEST_F(AdmissionTest, LetsAnUnknownGpuTypeThrough) {
  const Admission admission = admitted(request_of("gpu:quantum9:1", kHopeless));
  EXPECT_EQ(admission.decision, Decision::kNote);
  EXPECT_NE(admission.sentence.find("quantum9"), std::string::npos);
}

TEST_F(AdmissionTest, ReadsTheFileNextToTheScript) {
  std::ofstream(folder_ / "train.sh.memfathom.yaml")
      << "model: {preset: llama-2-7b}\ntraining: {batch_size: 64, sequence_length: 4096}\n";
  const Admission admission = admitted(request_of("gpu:t4:1", "#!/bin/sh\n./unknown\n"));
  EXPECT_EQ(admission.decision, Decision::kRefuse) << admission.sentence;
}

TEST_F(AdmissionTest, TheControllerDoesNotTellWhatFilesHold) {
  std::ofstream(folder_ / "secret.yaml") << "password: hunter2\n";
  AdmissionRequest request = request_of("gpu:a100:1", "");
  request.comment = "memfathom=secret.yaml";
  request.enforces = true;
  const Admission admission = admitted(request);
  EXPECT_EQ(admission.decision, Decision::kNote);
  EXPECT_EQ(admission.sentence.find("password"), std::string::npos) << admission.sentence;
}

// Only Slurm knows how many processes share the model.
TEST_F(AdmissionTest, AShardedJobIsSharedByAllGpusThatAreAskedFor) {
  AdmissionRequest request = request_of(
      "gres:gpu:a100:8",
      "#!/bin/sh\nsrun python train.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 "
      "--per_device_train_batch_size 1 --max_seq_length 2048 --fsdp full_shard "
      "--gradient_checkpointing\n");
  EXPECT_EQ(admitted(request).decision, Decision::kNote) << "their number is unknown";
  request.per_node = request.resources;
  request.nodes = 4;
  const Admission admission = admitted(request);
  EXPECT_EQ(admission.decision, Decision::kAllow) << admission.sentence;
}

TEST_F(AdmissionTest, WhatFitsOnAllGpusThatAreAskedForIsNotRefused) {
  AdmissionRequest request = request_of(
      "gres:gpu:a100:8",
      "#!/bin/sh\ntorchrun --nproc_per_node 1 train.py --model_name_or_path "
      "meta-llama/Llama-2-7b-hf --bf16 --per_device_train_batch_size 1 --max_seq_length 2048 "
      "--fsdp full_shard --gradient_checkpointing\n");
  EXPECT_EQ(admitted(request).decision, Decision::kRefuse);
  request.per_node = request.resources;
  request.nodes = 4;
  const Admission admission = admitted(request);
  EXPECT_EQ(admission.decision, Decision::kNote) << admission.sentence;
  EXPECT_NE(admission.sentence.find("with 1 of the 32 GPUs"), std::string::npos)
      << admission.sentence;
}

TEST_F(AdmissionTest, AJobThatNoNumberOfGpusHelpsIsRefused) {
  AdmissionRequest request = request_of("gres:gpu:t4:8", kHopeless);
  request.per_node = request.resources;
  request.nodes = 4;
  const Admission admission = admitted(request);
  EXPECT_EQ(admission.decision, Decision::kRefuse) << admission.sentence;
}

TEST_F(AdmissionTest, HostileSubmissionsAreLetThrough) {
  const std::vector<std::string> scripts{
      "",
      "\n",
      "train the model\n",  // no #!
      std::string({'\x7f', 'E', 'L', 'F', '\0', '\1', '\2'}),
      "#!/bin/sh\n" + std::string(1 << 20, '('),
      "#!/bin/sh\nexport X=" + std::string(1 << 20, '$'),
      "#!/bin/sh\npython train.py --model_name_or_path $UNSET --bf16\n",
      R"(#!/bin/sh
python train.py --model_name_or_path gpt2
python train.py --model_name_or_path gpt2-xl
)",
      R"(#!/bin/sh
#SBATCH --gres=gpu:1
#SBATCH hetjob
srun --het-group=0 ./a : --het-group=1 ./b
)",
      "#!/bin/sh\npython train.py --config /etc/shadow\n",
      "#!/bin/sh\npython train.py --model_name_or_path /etc/passwd --bf16\n"};
  for (const std::string& script : scripts) {
    const Admission admission = admitted(request_of("gpu:t4:1", script));
    EXPECT_EQ(admission.decision, Decision::kNote) << script.substr(0, 80) << admission.sentence;
    EXPECT_EQ(admission.sentence.find("root:"), std::string::npos) << admission.sentence;
  }
  for (const char* comment : {"memfathom=", "memfathom={", "memfathom={}",
                              "memfathom={\"model\": 3}", "memfathom=/dev/zero", "memfathom=/",
                              "memfathom=\xff\xfe", "memfathom='; rm -rf / #", "memfathom=$(id)"}) {
    AdmissionRequest request = request_of("gpu:t4:1", "");
    request.comment = comment;
    const Admission admission = admitted(request);
    EXPECT_EQ(admission.decision, Decision::kNote) << comment << ": " << admission.sentence;
  }
}

TEST(GpusAskedForTest, AreTheMostThatSlurmMayGive) {
  AdmissionRequest request;
  EXPECT_EQ(gpus_asked_for(request), 0);
  request.per_node = "gres:gpu:a100:8";
  EXPECT_EQ(gpus_asked_for(request), 8);
  request.nodes = 4;
  EXPECT_EQ(gpus_asked_for(request), 32);
  request.per_job = "gpu:a100:40";
  EXPECT_EQ(gpus_asked_for(request), 40);
  request.per_task = "gpu:2";
  request.tasks = 32;
  EXPECT_EQ(gpus_asked_for(request), 64);
}

TEST(GresTypeTest, MapsTypesToGpusAndPrefersTheLargestMemory) {
  EXPECT_EQ(gpu_of_gres_type("rtx_4090", {}), "rtx-4090");
  EXPECT_EQ(gpu_of_gres_type("a100", {}), "a100-80gb");
  EXPECT_EQ(gpu_of_gres_type("nvidia_a100-sxm4-40gb", {}), "a100-40gb");
  EXPECT_EQ(gpu_of_gres_type("a100", {{"a100", "a100-40gb"}}), "a100-40gb");
  EXPECT_EQ(gpu_of_gres_type("quantum9", {}), "");
}

TEST(GresTypeTest, RefusesNamesThatAreNoGpus) {
  EXPECT_THROW(gpu_names_in("a100=nonsense", "--gpus"), Error);
  EXPECT_THROW(gpu_names_in("a100", "--gpus"), Error);
  EXPECT_EQ(gpu_names_in("a100=a100-40gb,h=h100-80gb", "--gpus").size(), 2U);
}

TEST(AdmissionRequestTest, ReadsTheScriptAndTheExportedJobOfTheFilter) {
  const AdmissionRequest request = admission_request(
      R"({"mode": "explain", "probability": 0.9, "export": "ALL,MEMFATHOM_JOB=a.yaml",
          "options": "{\"argv\": [\"train.sh\", \"--lr\"]}", "comment": null})",
      "request");
  EXPECT_EQ(request.script_path, "train.sh");
  EXPECT_EQ(request.job, "a.yaml");
  EXPECT_FALSE(request.enforces);
  EXPECT_FALSE(request.user);
  const AdmissionRequest counted = admission_request(
      R"({"per_node": "gpu:a100:8", "nodes": "2-4", "tasks": null, "tasks_per_node": "8", "user": "1000"})",
      "request");
  EXPECT_EQ(counted.nodes, 4);
  EXPECT_EQ(counted.tasks, 32);
  EXPECT_EQ(counted.user, 1000U);
  EXPECT_EQ(admission_request(R"({"nodes": "4294967294", "tasks": "x"})", "request").nodes, 0);
  EXPECT_THROW(admission_request("[]", "request"), Error);
}

}  // namespace
}  // namespace memfathom
