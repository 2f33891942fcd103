#include <gtest/gtest.h>

#include "estimator/readers/write_back.h"

namespace memfathom {
namespace {

TEST(ByHandTest, EveryChangeHasWordsThatSomebodyCanType) {
  EXPECT_EQ(manual_setting({"training.batch_size", Node::integer(2)}),
            "batch_size=2 of the DataLoader");
  EXPECT_EQ(manual_setting({"training.optimizer", Node::string("adamw-8bit")}),
            "bitsandbytes.optim.AdamW8bit for the optimizer");
  EXPECT_EQ(manual_setting({"training.attention", Node::string("flash")}),
            "attn_implementation=\"flash_attention_2\" where the model is loaded");
  EXPECT_EQ(manual_setting({"training.preference.reference", Node::string("precomputed")}),
            "DPOConfig(precompute_ref_log_probs=True) and no ref_model for DPOTrainer");
  Node targets = Node::list();
  for (const char* name : {"q_proj", "v_proj"}) targets.append(Node::string(name));
  EXPECT_EQ(manual_setting({"training.lora.targets", targets}),
            "LoraConfig(target_modules=[\"q_proj\", \"v_proj\"]) of PEFT");
  EXPECT_EQ(manual_setting({"parallel.zero_stage", Node::integer(3)}),
            "DeepSpeed with zero_optimization.stage 3");
  EXPECT_EQ(manual_setting({"parallel.offload.activations", Node::string("cpu")}),
            "torch.autograd.graph.save_on_cpu(pin_memory=True) around the forward pass");
}

TEST(ByHandTest, WhatHasNoWordsIsSaidAsAKeyOfTheJob) {
  EXPECT_EQ(manual_setting({"training.num_frames", Node::integer(9)}), "training.num_frames = 9");
}

}  // namespace
}  // namespace memfathom
