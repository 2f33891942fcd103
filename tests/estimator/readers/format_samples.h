// Files as their projects' examples have them, for tests over all formats.
#pragma once

#include "estimator/readers/parsed_file.h"

namespace memfathom {

struct FormatSample {
  const char* name;
  FileFormat format;
  const char* yaml;  // every key is read or harmless
  const char* typo;  // a key of the format, misspelled
  const char* nearest;
};

inline const FormatSample kFormatSamples[] = {
    {"axolotl", FileFormat::kAxolotl,
     "{base_model: NousResearch/Llama-2-7b-hf, model_type: LlamaForCausalLM, tokenizer_type: "
     "LlamaTokenizer, load_in_8bit: true, load_in_4bit: false, strict: false, datasets: [{path: "
     "a/b, "
     "type: alpaca}], dataset_prepared_path: x, val_set_size: 0.05, output_dir: ./out, "
     "sequence_len: "
     "4096, sample_packing: true, pad_to_sequence_len: true, adapter: lora, lora_model_dir: null, "
     "lora_r: 32, lora_alpha: 16, lora_dropout: 0.05, lora_target_linear: true, wandb_project: x, "
     "wandb_entity: y, wandb_watch: z, wandb_name: n, wandb_log_model: m, "
     "gradient_accumulation_steps: 4, micro_batch_size: 2, num_epochs: 4, optimizer: "
     "adamw_bnb_8bit, lr_scheduler: cosine, learning_rate: 0.0002, bf16: auto, tf32: false, "
     "gradient_checkpointing: true, resume_from_checkpoint: a, logging_steps: 1, flash_attention: "
     "true, warmup_steps: 10, evals_per_epoch: 4, saves_per_epoch: 1, weight_decay: 0.0, "
     "special_tokens: {pad_token: x}, fsdp: [full_shard], fsdp_config: {fsdp_state_dict_type: "
     "FULL_STATE_DICT, fsdp_offload_params: false}}",
     "gradient_checkpoint", "gradient_checkpointing"},
    {"LLaMA-Factory", FileFormat::kLlamaFactory,
     "{model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct, trust_remote_code: true, stage: "
     "sft, "
     "do_train: true, finetuning_type: lora, lora_rank: 8, lora_alpha: 16, lora_target: all, "
     "dataset: identity, template: llama3, cutoff_len: 2048, max_samples: 1000, "
     "preprocessing_num_workers: 16, dataloader_num_workers: 4, output_dir: x, logging_steps: 10, "
     "save_steps: 500, plot_loss: true, overwrite_output_dir: true, save_only_model: false, "
     "report_to: none, per_device_train_batch_size: 1, gradient_accumulation_steps: 8, "
     "learning_rate: 1.0e-4, num_train_epochs: 3.0, lr_scheduler_type: cosine, warmup_ratio: 0.1, "
     "bf16: true, ddp_timeout: 180000000, resume_from_checkpoint: null}",
     "lorra_rank", "lora_rank"},
    {"torchtune", FileFormat::kTorchtune,
     "{output_dir: /tmp/x, model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, "
     "lora_attn_modules: [q_proj, v_proj], apply_lora_to_mlp: true, apply_lora_to_output: false, "
     "lora_rank: 8, lora_alpha: 16, lora_dropout: 0.0}, tokenizer: {_component_: t.m.tokenizer, "
     "path: /tmp/t, max_seq_len: 2048}, checkpointer: {_component_: c, checkpoint_dir: /nowhere, "
     "checkpoint_files: [a], model_type: LLAMA3}, dataset: {_component_: d, packed: false}, seed: "
     "1, "
     "shuffle: true, batch_size: 2, optimizer: {_component_: torch.optim.AdamW, fused: true, "
     "weight_decay: 0.01, lr: 3e-4}, lr_scheduler: {_component_: s, num_warmup_steps: 100}, loss: "
     "{_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}, epochs: 1, "
     "max_steps_per_epoch: 10, gradient_accumulation_steps: 8, clip_grad_norm: null, compile: "
     "false, metric_logger: {_component_: m, log_dir: x}, log_every_n_steps: 1, "
     "log_peak_memory_stats: true, device: cuda, dtype: bf16, enable_activation_checkpointing: "
     "true, "
     "enable_activation_offloading: false, profiler: {_component_: p, enabled: false}, "
     "save_adapter_weights_only: false, resume_from_checkpoint: false}",
     "enable_activation_checkpoint", "enable_activation_checkpointing"},
    {"TrainingArguments", FileFormat::kTrainingArguments,
     "{output_dir: x, overwrite_output_dir: true, do_train: true, per_device_train_batch_size: 2, "
     "gradient_accumulation_steps: 4, learning_rate: 5e-5, weight_decay: 0.0, adam_beta1: 0.9, "
     "adam_beta2: 0.999, adam_epsilon: 1e-8, max_grad_norm: 1.0, num_train_epochs: 3, max_steps: "
     "-1, "
     "lr_scheduler_type: linear, warmup_ratio: 0.0, log_level: passive, logging_dir: y, "
     "logging_strategy: steps, logging_steps: 500, save_strategy: steps, save_steps: 500, "
     "save_total_limit: 2, seed: 42, bf16: true, fp16: false, tf32: null, local_rank: 0, "
     "dataloader_num_workers: 0, dataloader_pin_memory: true, run_name: x, remove_unused_columns: "
     "true, label_smoothing_factor: 0.0, optim: adamw_torch, group_by_length: false, report_to: "
     "[wandb], push_to_hub: false, hub_model_id: null, gradient_checkpointing: true, "
     "gradient_checkpointing_kwargs: {use_reentrant: false}, ddp_timeout: 1800, torch_compile: "
     "false, eval_strategy: steps, eval_steps: 100, per_device_eval_batch_size: 8, deepspeed: "
     "{zero_optimization: {stage: 2}}}",
     "gradient_checkpoint", "gradient_checkpointing"},
    {"TRL", FileFormat::kTrainingArguments,
     "{model_name_or_path: mistralai/Mistral-7B-v0.1, model_revision: main, torch_dtype: bfloat16, "
     "attn_implementation: flash_attention_2, use_peft: true, load_in_4bit: true, lora_r: 16, "
     "lora_alpha: 16, lora_dropout: 0.05, lora_target_modules: [q_proj, v_proj], dataset_name: x, "
     "dataset_splits: [a], preprocessing_num_workers: 12, bf16: true, beta: 0.01, do_eval: true, "
     "eval_strategy: steps, eval_steps: 100, gradient_accumulation_steps: 2, "
     "gradient_checkpointing: true, hub_model_id: x, learning_rate: 5.0e-7, log_level: info, "
     "logging_steps: 10, lr_scheduler_type: cosine, max_length: 1024, max_prompt_length: 512, "
     "num_train_epochs: 1, optim: adamw_torch, output_dir: x, per_device_train_batch_size: 8, "
     "per_device_eval_batch_size: 8, push_to_hub: true, save_strategy: steps, save_steps: 100, "
     "save_total_limit: 1, seed: 42, warmup_ratio: 0.1}",
     "max_lenght", "max_length"},
    {"DeepSpeed", FileFormat::kDeepSpeed,
     "{fp16: {enabled: auto, loss_scale: 0, loss_scale_window: 1000, initial_scale_power: 16, "
     "hysteresis: 2, min_loss_scale: 1}, bf16: {enabled: auto}, optimizer: {type: AdamW, params: "
     "{lr: auto, betas: auto, eps: auto, weight_decay: auto}}, scheduler: {type: WarmupLR, params: "
     "{warmup_min_lr: auto}}, zero_optimization: {stage: 3, offload_optimizer: {device: cpu, "
     "pin_memory: true}, offload_param: {device: cpu, pin_memory: true}, overlap_comm: true, "
     "contiguous_gradients: true, sub_group_size: 1.0e9, reduce_bucket_size: auto, "
     "stage3_prefetch_bucket_size: auto, stage3_param_persistence_threshold: auto, "
     "stage3_max_live_parameters: 1.0e9, stage3_max_reuse_distance: 1.0e9, "
     "stage3_gather_16bit_weights_on_model_save: true}, gradient_accumulation_steps: auto, "
     "gradient_clipping: auto, steps_per_print: 2000, train_batch_size: auto, "
     "train_micro_batch_size_per_gpu: auto, wall_clock_breakdown: false}",
     "train_micro_batch_size_per_gpus", "train_micro_batch_size_per_gpu"},
    {"accelerate", FileFormat::kAccelerate,
     "{compute_environment: LOCAL_MACHINE, debug: false, distributed_type: FSDP, downcast_bf16: "
     "'no', enable_cpu_affinity: false, fsdp_config: {fsdp_activation_checkpointing: false, "
     "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_backward_prefetch: BACKWARD_PRE, "
     "fsdp_cpu_ram_efficient_loading: true, fsdp_forward_prefetch: true, fsdp_offload_params: "
     "false, fsdp_sharding_strategy: FULL_SHARD, fsdp_state_dict_type: FULL_STATE_DICT, "
     "fsdp_sync_module_states: true, fsdp_use_orig_params: true}, machine_rank: 0, "
     "main_training_function: main, mixed_precision: bf16, num_machines: 1, num_processes: 8, "
     "rdzv_backend: static, same_network: true, tpu_env: [], tpu_use_cluster: false, tpu_use_sudo: "
     "false, use_cpu: false}",
     "gradient_accumulation_step", "gradient_accumulation_steps"},
    {"torchtitan", FileFormat::kTorchtitan,
     "{job: {dump_folder: x}, profiling: {enable_profiling: true}, metrics: {log_freq: 10}, model: "
     "{name: llama3, flavor: 8B, hf_assets_path: ./Llama-3.1-8B}, optimizer: {name: AdamW, lr: "
     "3e-4, eps: 1e-8}, lr_scheduler: {warmup_steps: 200}, training: {local_batch_size: 1, "
     "seq_len: "
     "8192, max_norm: 1.0, steps: 1000, dataset: c4, enable_cpu_offload: false}, parallelism: "
     "{data_parallel_replicate_degree: 2, data_parallel_shard_degree: 4, "
     "fsdp_reshard_after_forward: default, tensor_parallel_degree: 2, pipeline_parallel_degree: 2, "
     "context_parallel_degree: 1}, checkpoint: {enable: false, export_dtype: float32}, compile: "
     "{enable: false}, activation_checkpoint: {mode: full, selective_ac_option: op}, "
     "validation: {enable: false}}",
     "training.local_batchsize", "training.local_batch_size"},
    {"LitGPT", FileFormat::kLitgpt,
     "{model_name: tiny-llama-1.1b, out_dir: x, precision: bf16-mixed, resume: false, data: "
     "TinyLlama, train: {save_interval: 1000, log_interval: 1, global_batch_size: 512, "
     "micro_batch_size: 4, lr_warmup_steps: 2000, max_tokens: 3000000, max_seq_length: 2048, "
     "max_norm: 1.0, min_lr: 4.0e-05}, eval: {interval: 1000}, optimizer: {class_path: "
     "torch.optim.AdamW, init_args: {lr: 4e-4}}, devices: 2, num_nodes: 1, tokenizer_dir: y, "
     "logger_name: tensorboard, seed: 42}",
     "train.max_seq_lenght", "train.max_seq_length"},
    {"ms-swift", FileFormat::kMsSwift,
     "{model: Qwen/Qwen2.5-7B-Instruct, torch_dtype: float16, tuner_type: full, dataset: a/b, "
     "max_length: 2048, per_device_train_batch_size: 1, per_device_eval_batch_size: 1, "
     "eval_strategy: steps, learning_rate: 1e-5, gradient_accumulation_steps: 16, "
     "gradient_checkpointing: false, freeze_vit: false, optim: adamw_torch, output_dir: output, "
     "system: hello, model_author: swift, warmup_ratio: 0.05, dataloader_num_workers: 4}",
     "max_lenght", "max_length"},
    {"verl", FileFormat::kVerl,
     "{data: {train_batch_size: 256, micro_batch_size_per_gpu: 4, train_files: x, max_length: "
     "1024, "
     "truncation: error}, model: {partial_pretrain: google/gemma-2b, "
     "enable_gradient_checkpointing: "
     "true, lora_rank: 8, lora_alpha: 16, target_modules: all-linear, use_liger: false, strategy: "
     "fsdp2, fsdp_config: {model_dtype: bf16, offload_params: false}}, optim: {lr: 1e-5}, trainer: "
     "{n_gpus_per_node: 8, nnodes: 1, project_name: x}}",
     "data.max_lenght", "data.max_length"},
    {"NeMo Automodel", FileFormat::kNemoAutomodel,
     "{step_scheduler: {global_batch_size: 64, local_batch_size: 8, num_epochs: 1}, dist_env: "
     "{backend: nccl}, model: {_target_: nemo_automodel.x, pretrained_model_name_or_path: "
     "meta-llama/Llama-3.2-1B, torch_dtype: float32}, distributed: {strategy: ddp, dp_size: 2, "
     "tp_size: 1}, quantization: {load_in_4bit: false}, dataset: {_target_: x, seq_length: 512}, "
     "optimizer: {_target_: torch.optim.Adam, lr: 1.0e-5}, lr_scheduler: {min_lr: 1.0e-6}}",
     "step_scheduler.local_batchsize", "step_scheduler.local_batch_size"},
    {"NeMo RL", FileFormat::kNemoRl,
     "{dpo: {max_num_steps: 10}, checkpointing: {enabled: true}, policy: {model_name: "
     "meta-llama/Llama-3.2-1B, tokenizer: {name: x}, train_micro_batch_size: 1, "
     "max_total_sequence_length: 1024, precision: float32, dtensor_cfg: {enabled: true, "
     "cpu_offload: false, activation_checkpointing: true, tensor_parallel_size: 2, lora_cfg: "
     "{enabled: true, dim: 8}}, optimizer: {name: torch.optim.AdamW, kwargs: {lr: 5.0e-6}}, "
     "max_grad_norm: 1.0}, data: {dataset_name: x}, cluster: {gpus_per_node: 8, num_nodes: 1}}",
     "policy.precison", "policy.precision"},
    {"training YAML", FileFormat::kTrainYaml,
     "{model: {name: fno, hidden_dim: 256, num_layers: 10, freeze_encoder: false}, data: {height: "
     "128, width: 128, num_workers: 4}, train: {batch_size: 8, accumulation_steps: 1, use_amp: "
     "false, lr: 1e-3, epochs: 100, optimizer: {name: adamw, lr: 1e-3, weight_decay: 1e-4}, "
     "gpu_memory: 24}, seed: 1, output_dir: x, wandb: {mode: x}}",
     "gradient_checkpoint", "gradient_checkpointing"},
    {"adapter_config.json", FileFormat::kAdapter,
     "{peft_type: LORA, task_type: CAUSAL_LM, r: 16, lora_alpha: 32, lora_dropout: 0.1, bias: "
     "none, "
     "target_modules: [q_proj], base_model_name_or_path: gpt2, fan_in_fan_out: false, "
     "inference_mode: true, init_lora_weights: true, modules_to_save: null}",
     "lora_droput", "lora_dropout"},
};

}  // namespace memfathom
