// The keys of each format that do not change the memory, or that its reader reads only where
// another key asks for them. Everything else that is not read is named in the answer.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "estimator/readers/harmless_group.h"
#include "estimator/readers/script_model.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

// What the Trainer and the tools over it share.
constexpr auto kTrainerGroups = std::to_array<HarmlessGroup>({
    {"logging",
     "logging_* logging_strategy log_level* log_on_each_node report_to run_name project trackio_* "
     "wandb_** *_wandb "
     "mlflow_* comet_* swanlab_** use_swanlab use_mlflow use_comet use_tensorboard tensorboard_* "
     "disable_tqdm debug verbose plot_loss include_num_input_tokens_seen include_tokens_per_second "
     "skip_memory_metrics log_completions num_completions_to_print otel_* use_otel_metrics"},
    {"saving and resuming",
     "output_dir overwrite_output_dir save_* save_strategy save_only_model save_best_model "
     "save_optimizer_state_dict save_adapter_weights_only saves_per_epoch resume_from_checkpoint "
     "auto_resume_from_checkpoints ignore_data_skip load_best_model_at_end metric_for_best_model "
     "greater_is_better restore_callback_states_from_checkpoint enable_jit_checkpoint"},
    {"hub",
     "push_to_hub* hub_* hub_model_id hub_model_revision hub_strategy push_to_hub_model_id "
     "push_to_hub_token hub_token hf_use_auth_token hf_* trust_remote_code model_revision "
     "use_auth_token token "
     "cache_dir *_hub_token"},
    {"scheduling",
     "learning_rate lr *_lr *_lr_ratio lr_* warmup_* weight_decay adam_beta1 adam_beta2 adam_beta3 "
     "adam_epsilon adam_eps num_train_epochs num_epochs max_steps cosine_* *_learning_rate "
     "eta_min"},
    {"when evaluation runs",
     "do_train do_eval do_predict eval_steps eval_delay eval_on_start evals_per_epoch "
     "eval_table_size "
     "early_stopping_* batch_eval_metrics prediction_loss_only include_for_metrics "
     "include_inputs_for_metrics eval_use_gather_object eval_do_concat_batches val_size "
     "eval_causal_lm_metrics do_causal_lm_eval"},
    {"seeds", "seed data_seed full_determinism"},
    {"data",
     "dataset dataset_* dataset_batch_size dataset_mixture.** datasets eval_dataset* "
     "train_dataset* test_datasets data_files "
     "remove_unused_columns label_names group_by_length length_column_name dataloader_num_workers "
     "dataloader_pin_memory dataloader_prefetch_factor dataloader_persistent_workers streaming "
     "max_samples overwrite_cache preprocessing_* shuffle* chat_template* chat_template_kwargs "
     "eos_token pad_token tokenizer tokenizer_* train_on_inputs assistant_only_loss "
     "completion_only_loss accelerator_config.split_batches accelerator_config.dispatch_batches "
     "accelerator_config.even_batches accelerator_config.use_seedable_sampler "
     "accelerator_config.non_blocking accelerator_config.gradient_accumulation_kwargs "
     "accelerator_config.gradient_accumulation_kwargs.sync_each_batch "
     "average_tokens_across_devices train_sampling_strategy dataloader_in_order truncation_mode"},
    {"launching",
     "local_rank ddp_timeout ddp_backend ddp_find_unused_parameters ddp_broadcast_buffers "
     "past_index no_cuda use_cpu use_mps_device tpu_* mp_parameters ray_* use_ray "
     "_n_gpu __cached__* parallel_mode place_model_on_device"},
    {"numbers that change no tensor's size",
     "tf32 lora_alpha use_rslora peft_use_rslora bias lora_bias lora_fan_in_fan_out "
     "max_grad_norm gradient_checkpointing_kwargs activation_checkpointing_kwargs nan_inf_filter "
     "logging_nan_inf_filter "
     "use_legacy_prediction_loop half_precision_backend fp16_opt_level liger_kernel_config"},
    {"noise on the embeddings of one pass, freed with it", "neftune_noise_alpha"},
    {"evaluation on the CPU", "jit_mode_eval use_ipex"},
});

constexpr auto kTrainingArgumentsGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "bf16 fp16 fp16_full_eval bf16_full_eval eval_strategy evaluation_strategy model_name "
     "model_id "
     "dtype torch_dtype r lora_r lora_dropout lora_target_modules target_modules "
     "gamma_beta_ratio use_bnb_nested_quant load_in_4bit load_in_8bit bnb_4bit_quant_type beta "
     "loss_type "
     "num_generations max_completion_length response_length max_prompt_length desirable_weight "
     "undesirable_weight reference_free precompute_ref_log_probs simpo_gamma cpo_alpha use_vllm "
     "vllm_** teacher_model_name_or_path per_device_eval_batch_size deepspeed"},
    {"sampling of generated answers",
     "temperature top_p top_k min_p repetition_penalty reward_weights reward_funcs scale_rewards "
     "epsilon epsilon_high num_iterations sync_ref_model ref_model_* steps_per_generation "
     "mask_truncated_completions"},
    {"data",
     "packing_strategy padding_free task subset split streaming_* max_train_samples "
     "max_eval_samples train_file validation_file dataset_text_field"},
    {"PEFT's words without a size",
     "task_type peft_type lora_task_type random_state "
     "loftq_config inference_mode layer_replication"},
    {"of versions that no longer read it", "per_gpu_eval_batch_size"},
    {"defaults of sections that are off",
     "fsdp_min_num_params fsdp_config.min_num_params fsdp_config.xla* "
     "torch_compile_backend torch_compile_mode torch_empty_cache_steps torchdynamo"},
});

constexpr auto kFsdpSectionNames = std::string_view(
    "fsdp_config.auto_wrap_policy fsdp_config.fsdp_auto_wrap_policy "
    "fsdp_config.transformer_layer_cls_to_wrap fsdp_config.fsdp_transformer_layer_cls_to_wrap "
    "fsdp_config.state_dict_type fsdp_config.fsdp_state_dict_type "
    "fsdp_config.final_state_dict_type fsdp_config.use_orig_params "
    "fsdp_config.fsdp_use_orig_params "
    "fsdp_config.sync_module_states fsdp_config.fsdp_sync_module_states "
    "fsdp_config.cpu_ram_efficient_loading fsdp_config.fsdp_cpu_ram_efficient_loading "
    "fsdp_config.backward_prefetch fsdp_config.fsdp_backward_prefetch "
    "fsdp_config.forward_prefetch fsdp_config.fsdp_forward_prefetch");

constexpr auto kAxolotlGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "sample_packing pad_to_sequence_len bf16 fp16 bfloat16 float16 load_in_8bit load_in_4bit "
     "adapter lora_r lora_dropout "
     "lora_target_modules lora_target_linear plugins cut_cross_entropy chunked_cross_entropy "
     "bnb_config_kwargs.bnb_4bit_use_double_quant test_datasets val_set_size deepspeed fsdp "
     "fsdp_config.fsdp_version fsdp_config.*activation_checkpointing"},
    {"how FSDP wraps, loads and saves", kFsdpSectionNames},
    {"data",
     "pretraining_dataset rl_beta special_tokens tokens added_tokens_overrides eot_tokens "
     "skip_prepare_dataset push_dataset_to_hub min_sample_len sample_packing_eff_est "
     "sample_packing_sequentially sample_packing_group_size sample_packing_bin_size "
     "eval_sample_packing streaming_* curriculum_sampling default_system_message image_resize_* "
     "sample_packing_seq_len_multiplier total_num_tokens processor_type type_of_model "
     "strict model_type is_falcon_derived_model is_llama_derived_model is_mistral_derived_model "
     "is_qwen_derived_model base_model_config base_model_ignore_patterns revision_of_model "
     "low_cpu_mem_usage lora_model_dir"},
    {"speed only",
     "lora_mlp_kernel lora_qkv_kernel lora_o_kernel flash_attn_cross_entropy "
     "liger_rope liger_rms_norm liger_rms_norm_gated liger_glu_activation liger_layer_norm "
     "flash_attn_rms_norm flash_attn_fuse_qkv flash_attn_fuse_mlp use_kernels"},
    {"rounds the vocabulary up by 31 rows at most", "resize_token_embeddings_to_32x"},
    {"numbers of the loss",
     "orpo_alpha kto_desirable_weight kto_undesirable_weight "
     "center_rewards_coefficient num_labels dpo_label_smoothing simpo_gamma "
     "loss_watchdog_threshold loss_watchdog_patience"},
    {"launching",
     "ddp device gpu gpu_count node_count project_name provider secrets timeout* "
     "volumes branch dockerfile_commands"},
});

constexpr auto kLlamaFactoryGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "bf16 fp16 pure_bf16 lora_rank lora_dropout lora_target quantization_bit double_quantization "
     "finetuning_type freeze_trainable_layers freeze_language_model freeze_vision_tower "
     "freeze_multi_modal_projector image_max_pixels pref_loss stage deepspeed "
     "per_device_eval_batch_size evaluation_strategy eval_strategy neat_packing packing "
     "dist_config.config_file peft_config.freeze_trainable_layers peft_config.r "
     "peft_config.lora_dropout peft_config.target_modules"},
    {"data",
     "template media_dir mix_strategy interleave_probs tokenized_path mask_history video_fps "
     "use_fast_tokenizer split_special_tokens new_special_tokens "
     "default_system enable_thinking eval_num_beams ignore_pad_token_for_loss batching_strategy"},
    {"numbers of the loss or of the adapters",
     "pref_beta pref_ftx kto_chosen_weight kto_rejected_weight loraplus_lr_ratio pissa_* "
     "peft_config.lora_alpha use_dft_loss use_asft_loss asft_alpha use_eaft_loss eaft_alpha "
     "simpo_gamma dpo_label_smoothing optim_config.lr optim_config.adamw_* optim_config.wd "
     "optim_config.weight_decay optim_config.momentum optim_config.nesterov optim_config.ns_steps"},
    {"saving",
     "export_* adapter_name_or_path adapter_folder peft_config.adapter_name_or_path "
     "peft_config.export_dir peft_config.export_size dist_config.dcp_path"},
    {"inference only",
     "infer_backend sample_backend max_new_tokens predict_with_generate "
     "temperature top_p top_k num_beams"},
    {"details of settings listed under \"not modelled\"",
     "galore_** apollo_** badam_** kt_config.** kt_** fp8_** muon_** oft_** quant_config.name"},
    {"loading", "low_cpu_mem_usage init_config upcast_layernorm model_class rope_scaling"},
    {"how FSDP wraps, loads and saves", kFsdpSectionNames},
});

constexpr auto kTorchtuneGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "checkpointer.** model._component_ model.lora_attn_modules model.apply_lora_to_mlp "
     "optimizer._component_ loss._component_ dtype"},
    {"numbers that change no tensor's size",
     "model.lora_alpha model.norm_eps optimizer.lr optimizer.weight_decay optimizer.betas "
     "optimizer.eps optimizer.momentum loss.beta loss.label_smoothing loss.ignore_index "
     "lr_scheduler"},
    {"other checkpoints",
     "ref_checkpointer.** teacher_checkpointer.** *_checkpointer base_model_path"},
    {"data",
     "dataset dataset_val datasets shuffle collate_fn dataloader tokenizer._component_ "
     "tokenizer.path tokenizer.merges_* tokenizer.vocab_path tokenizer.prompt_template "
     "tokenizer.special_tokens_path run_val_every_n_steps batch_size_val"},
    {"scheduling", "epochs max_steps_per_epoch num_steps seed name"},
    {"what a prompt or a task says",
     "tasks limit prompt temperature top_k apply_chat_template "
     "include_path"},
    {"logging and profiling",
     "metric_logger profiler log_every_n_steps log_peak_memory_stats "
     "log_level debug_logging_enabled"},
    {"saving",
     "output_dir resume_from_checkpoint save_* save_adapter_weights_only "
     "enable_async_checkpointing "
     "keep_last_n_checkpoints"},
    {"launching",
     "custom_sharded_layers device low_cpu_ram dist_backend use_distributed_state_dict "
     "cudnn_deterministic_mode"},
    {"numbers of the loss", "kd_ratio kd_loss loss.epsilon loss.kl_coeff loss.value_*"},
});

constexpr auto kDeepSpeedGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "bf16.enabled bfloat16.enabled fp16.enabled train_batch_size optimizer.type gradient_clipping "
     "zero_optimization.stage3_param_persistence_threshold "
     "zero_optimization.param_persistence_threshold"},
    {"scheduling", "optimizer.params scheduler"},
    {"the loss scale",
     "fp16.loss_scale fp16.loss_scale_window fp16.initial_scale_power fp16.hysteresis "
     "fp16.min_loss_scale fp16.consecutive_hysteresis prescale_gradients "
     "gradient_predivide_factor"},
    {"logging",
     "steps_per_print wall_clock_breakdown dump_state flops_profiler tensorboard wandb "
     "csv_monitor comet monitor_config comms_logger comms_config memory_breakdown "
     "_comment"},
    {"saving",
     "checkpoint zero_optimization.stage3_gather_16bit_weights_on_model_save "
     "zero_optimization.stage3_gather_fp16_weights_on_model_save "
     "zero_optimization.gather_16bit_weights_on_model_save "
     "zero_optimization.gather_fp16_weights_on_model_save "
     "zero_optimization.load_from_fp32_weights checkpoint.use_node_local_storage "
     "checkpoint.parallel_write.**"},
    {"host memory and transfers",
     "zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_param.pin_memory "
     "zero_optimization.offload_optimizer.buffer_count "
     "zero_optimization.offload_optimizer.buffer_size "
     "zero_optimization.offload_param.buffer_count zero_optimization.offload_param.buffer_size "
     "zero_optimization.offload_optimizer.fast_init "
     "zero_optimization.offload_optimizer.pipeline* "
     "zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.nvme_path "
     "zero_optimization.offload_param.max_in_cpu aio.** zero_force_ds_cpu_optimizer"},
    {"details of settings listed under \"not modelled\"", "autotuning.** data_efficiency.**"},
    {"order of communication",
     "zero_optimization.reduce_scatter zero_optimization.allgather_partitions "
     "zero_optimization.round_robin_gradients zero_optimization.stage3_max_reuse_distance "
     "zero_optimization.max_reuse_distance zero_optimization.sub_group_size "
     "zero_optimization.contiguous_gradients zero_optimization.ignore_unused_parameters "
     "communication_data_type disable_allgather sparse_gradients"},
    {"checks",
     "zero_allow_untested_optimizer elasticity seed "
     "dataloader_drop_last"},
    {"activation checkpointing's layout, which transformers does not use",
     "activation_checkpointing.number_checkpoints activation_checkpointing.profile "
     "activation_checkpointing.synchronize_checkpoint_boundary "
     "activation_checkpointing.contiguous_memory_optimization"},
});

constexpr auto kAccelerateGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "num_machines num_processes distributed_type compute_environment mixed_precision "
     "fsdp_config.fsdp_sharding_strategy fsdp_config.fsdp_reshard_after_forward "
     "fsdp_config.fsdp_offload_params fsdp_config.fsdp_auto_wrap_policy "
     "deepspeed_config.deepspeed_config_file deepspeed_config.zero3_init_flag "
     "dynamo_config.dynamo_backend parallelism_config.parallelism_config_dp_shard_size "
     "parallelism_config.parallelism_config_dp_replicate_size"},
    {"launching",
     "machine_rank main_process_* main_training_function rdzv_* same_network gpu_ids tpu_* use_cpu "
     "downcast_bf16 debug enable_cpu_affinity num_cpu_threads_per_process mpirun_config "
     "deepspeed_config.deepspeed_multinode_launcher deepspeed_config.deepspeed_hostfile "
     "deepspeed_config.deepspeed_exclusion_filter deepspeed_config.deepspeed_inclusion_filter "
     "command_file commands ec2_instance_type iam_role_name "
     "profile region base_job_name image_uri py_version pytorch_version transformers_version "
     "sagemaker_* additional_args ipex_config"},
    {"saving", "deepspeed_config.zero3_save_16bit_model"},
    {"how FSDP wraps, loads and saves", kFsdpSectionNames},
    {"compiling, which is named where it is on", "dynamo_config dynamo_backend"},
    {"numbers that change no tensor's size",
     "deepspeed_config.gradient_clipping "
     "megatron_lm_config.megatron_lm_gradient_clipping"},
});

constexpr auto kTrainYamlGroups = std::to_array<HarmlessGroup>({
    {"read after the files are merged", "model.freeze_**"},
    {"read where another key asks for it",
     "@use_amp @amp @amp_dtype @precision @dtype @mixed_precision trainer.precision "
     "@model_name @model_type @model_name_or_path @pretrained_model_name_or_path @arch model.name "
     "model.type model.kind model.architecture"},
    {"logging",
     "name log *.log logger *.logger logging *.logging log_* *.log_* wandb* *.wandb* tensorboard* "
     "*.tensorboard* report_to *.report_to run_name *.run_name experiment experiment_name exp_name "
     "project project_name *.project *.project_name tracker_* print_freq *.print_freq verbose "
     "*.verbose debug notes tags description"},
    {"saving and resuming",
     "output_dir *.output_dir output *.output save_* *.save_* out_dir *.out_dir resume *.resume "
     "resume_* *.resume_* checkpoint_dir *.checkpoint_dir ckpt_dir *.ckpt_dir ckpt_path "
     "*.ckpt_path checkpointing_steps checkpoints_total_limit always_save_checkpoint init_from "
     "exp_manager checkpoint_path *.checkpoint_path"},
    {"hub", "push_to_hub* hub_* revision variant trust_remote_code"},
    {"scheduling",
     "lr *.lr lr_* *.lr_* *_lr *.*_lr learning_rate *.learning_rate *_learning_rate scheduler "
     "*.scheduler scheduler_* sched *.sched sched_* warmup_* *.warmup_* epochs *.epochs num_epochs "
     "*.num_epochs max_epochs *.max_epochs num_train_epochs max_steps *.max_steps max_train_steps "
     "max_iters *.max_iters iterations *.iterations steps *.steps weight_decay *.weight_decay wd "
     "momentum *.momentum betas *.betas beta1 beta2 *.beta1 *.beta2 eps *.eps adam_* *.adam_* "
     "opt_eps opt_betas decay_* *.decay_* step_size *.step_size gamma *.gamma patience *.patience "
     "min_lr scale_lr optimizer._target_ optimizer.name optimizer.type "
     "*.optimizer._target_ *.optimizer.name *.optimizer.type snr_gamma noise_offset loss_scale "
     "clip_grad grad_clip *.grad_clip *.clip_grad max_grad_norm *.max_grad_norm "
     "gradient_clip_val *.gradient_clip_val"},
    {"when evaluation runs",
     "eval_* *.eval_* val_* *.val_* validation_* *.validation_* check_val_every_n_epoch "
     "*.check_val_every_n_epoch test_* num_sanity_val_steps *.num_sanity_val_steps "
     "limit_*_batches *.limit_*_batches"},
    {"seeds", "seed *.seed deterministic *.deterministic random_seed *.random_seed"},
    {"data",
     "dataset *.dataset dataset_name dataset_config_name train_data_dir data_dir data_path "
     "data.data_dir data.data_path data.path data.root data.name data.train* data.val* data.test* "
     "root *.root path *.path image_column caption_column num_workers *.num_workers workers "
     "dataloader_num_workers pin_memory *.pin_memory pin_mem prefetch_factor *.prefetch_factor "
     "shuffle *.shuffle cache_dir center_crop random_flip prompt instance_prompt instance_data_dir "
     "class_* mean std *.mean *.std *.split *.splits"},
    {"launching",
     "local_rank device *.device dist_url dist_backend backend port accelerator "
     "trainer.accelerator trainer.logger "
     "allow_tf32 tf32"},
});

constexpr auto kTorchtitanGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "model.name model.flavor model.hf_assets_path model.converters optimizer.name "
     "optimizer.implementation activation_checkpoint.selective_ac_option "
     "activation_checkpoint.mode training.dtype training.mixed_precision_param "
     "training.mixed_precision_reduce "
     "float8.enable_float8_linear "
     "parallelism.fsdp_reshard_after_forward training.max_norm"},
    {"logging and profiling", "job profiling metrics comm debug"},
    {"saving", "checkpoint.**"},
    {"scheduling",
     "optimizer.lr optimizer.eps optimizer.beta1 optimizer.beta2 optimizer.weight_decay "
     "optimizer.early_step_in_backward lr_scheduler training.steps training.warmup_steps "
     "training.gc_freq training.seed training.deterministic training.global_batch_size"},
    {"data",
     "training.dataset training.dataset_path model.tokenizer_path model.print_after_conversion "
     "validation model.norm_type"},
    {"details of settings listed under \"not modelled\"",
     "compile float8 quantize mx parallelism.pipeline_parallel_schedule* "
     "parallelism.pipeline_parallel_microbatch* parallelism.disable_loss_parallel "
     "experimental.pipeline_parallel_* experimental.custom_* activation_checkpoint.per_op_* "
     "fault_tolerance"},
});

constexpr auto kLitgptGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "checkpoint_dir initial_checkpoint_dir model_name precision quantize devices num_nodes "
     "optimizer.class_path train.global_batch_size train.max_norm lora_query lora_key lora_value "
     "lora_projection lora_mlp"},
    {"numbers that change no tensor's size", "lora_alpha optimizer.init_args"},
    {"logging and saving",
     "out_dir logger_name resume train.save_interval train.log_interval log seed tokenizer_dir "
     "access_token"},
    {"scheduling",
     "train.lr_warmup* train.epochs train.max_tokens train.max_steps train.min_lr train.max_time "
     "train.max_additional_steps"},
    {"when evaluation runs", "eval"},
    {"data", "data"},
});

constexpr auto kMsSwiftGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "torch_dtype tuner_type train_type sft_type lora_rank lora_dropout target_modules quant_bits "
     "quant_method bnb_4bit_use_double_quant rlhf_type micro_batch_size recompute_granularity "
     "gradient_checkpointing freeze_vit freeze_aligner freeze_llm use_vllm vllm_mode "
     "per_device_eval_batch_size eval_strategy evaluation_strategy deepspeed attn_impl "
     "attention_backend max_grad_norm"},
    {"data",
     "system model_author model_name split_dataset_ratio load_from_cache_file columns template* "
     "response_prefix add_non_thinking_prefix loss_scale padding_free truncation_strategy "
     "lazy_tokenize val_dataset custom_* cached_dataset cached_val_dataset"},
    {"saving",
     "add_version merge_lora create_checkpoint_symlink finetune no_save_* no_save_optim save*"},
    {"the environment and launching", "ENV use_ray device_groups nproc_per_node external_plugins"},
    {"numbers of the loss", "beta rpo_alpha min_lr moe_*loss* use_hf task_type"},
    {"details of Megatron's training, which is named as a whole",
     "global_batch_size moe_** sequence_parallel cross_entropy_loss_fusion recompute_** "
     "overlap_* use_distributed_optimizer train_iters *_fusion"},
    {"details of settings listed under \"not modelled\"",
     "vllm_** num_generations max_completion_length temperature top_p top_k reward_** sleep_level "
     "offload_model offload_optimizer log_completions teacher_** num_iterations"},
});

constexpr auto kVerlGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "actor_rollout_ref.model.lora_rank model.lora_rank actor_rollout_ref.model.target_modules "
     "model.target_modules actor_rollout_ref.actor.strategy model.strategy "
     "actor_rollout_ref.actor.fsdp_config.model_dtype model.fsdp_config.model_dtype "
     "trainer.n_gpus_per_node trainer.nnodes data.max_prompt_length data.max_response_length "
     "actor_rollout_ref.model.path model.partial_pretrain model.path"},
    {"names of classes", "*_target_"},
    {"logging, saving and scheduling",
     "trainer.project_name trainer.experiment_name trainer.logger "
     "trainer.total_* trainer.save_freq trainer.test_freq trainer.default_* "
     "trainer.resume_* trainer.max_* trainer.seed trainer.val_* "
     "trainer.critic_warmup trainer.device trainer.log_* "
     "trainer.balance_batch trainer.del_local* trainer.rollout_data_dir "
     "trainer.validation_data_dir trainer.esi_* trainer.use_legacy* global_profiler* *.profiler* "
     "*.checkpoint.* optim.* *.optim.* "
     "actor_rollout_ref.actor.shuffle *.seed *.data_loader_seed custom_reward_function* "
     "algorithm* ray_* transfer_queue* defaults hydra prometheus*"},
    {"data",
     "data.train_files data.val_files data.*_key data.*_keys data.shuffle* data.truncation "
     "data.return_* data.custom_cls* data.sampler* data.filter_* data.trust_remote_code "
     "data.tokenizer data.use_shm data.*_max_samples data.multiturn* data.balance_dp_token "
     "data.chat_template data.apply_chat_template_kwargs data.train_batch_size "
     "data.val_batch_size data.*_num_workers data.validation_* data.seed data.image_patch_size "
     "data.datagen* data.gen_batch_size"},
    {"numbers of the loss",
     "*.clip_ratio* *.policy_loss* *.entropy_coeff *.kl_loss_* *.use_kl_loss *.loss_agg_mode "
     "*.ppo_epochs *.ppo_mini_batch_size *.grad_clip *.tau_* *.loss_scale_factor "
     "*.calculate_* *.lora_alpha *.rollout_n"},
    {"loading",
     "*.use_shm *.trust_remote_code *.external_lib *.custom_chat_template *.tokenizer_path "
     "*.hf_config_path *.override_config* *.wrap_policy* *.use_orig_params *.forward_prefetch "
     "*.use_remove_padding use_remove_padding *.use_torch_compile *.router_replay* "
     "*.fused_kernel_options* *.full_determinism"},
    {"the reference's pass, smaller than the actor's step", "actor_rollout_ref.ref.**"},
    {"which parts run where", "actor_rollout_ref.hybrid_engine actor_rollout_ref.nccl_timeout"},
});

constexpr auto kNemoAutomodelGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "model._target_ model.pretrained_model_name_or_path model.config._target_ "
     "model.config.pretrained_model_name_or_path model.torch_dtype "
     "model.attn_implementation peft.target_modules peft.match_all_linear distributed.dp_size "
     "distributed.strategy distributed._target_ dataset.seq_length dataset.seq_len "
     "dataset.max_length packed_sequence.split_across_pack packed_sequence.max_packs "
     "optimizer._target_ loss_fn._target_ fp8.enabled "
     "quantization.load_in_4bit quantization.load_in_8bit dataloader.collate_fn.max_length"},
    {"numbers that change no tensor's size",
     "peft._target_ peft.alpha peft.use_triton peft.exclude_modules peft.dropout_position "
     "peft.lora_A_init* optimizer.* clip_grad_norm* loss_fn.* quantization.*"},
    {"data",
     "dataset* validation_dataset.** dataloader* validation_dataloader.** processor* tokenizer* "
     "dataset.partition"},
    {"logging, saving and scheduling",
     "recipe step_scheduler.global_batch_size step_scheduler.*_every_steps "
     "step_scheduler.num_epochs step_scheduler.max_steps "
     "step_scheduler.log_* step_scheduler.gc_* step_scheduler.save_* dist_env rng lr_scheduler* "
     "checkpoint.** wandb* mlflow* ci.** seed "
     "logger* comet* benchmark* profiling* autonvtx slurm*"},
    {"loading",
     "model.trust_remote_code model.use_liger_kernel model.use_sdpa_patching "
     "model.output_hidden_states compile* model.force_hf distributed.backend"},
});

constexpr auto kNemoRlGroups = std::to_array<HarmlessGroup>({
    {"read where another key asks for it",
     "policy.model_name policy.precision policy.dtensor_cfg.lora_cfg.dim "
     "policy.dtensor_cfg.lora_cfg.alpha "
     "policy.dtensor_cfg.lora_cfg.dropout "
     "policy.dtensor_cfg.lora_cfg.dropout_position "
     "policy.dtensor_cfg.lora_cfg.lora_A_init "
     "policy.dtensor_cfg.lora_cfg.use_triton "
     "policy.dtensor_cfg.lora_cfg.target_modules "
     "policy.dtensor_cfg.lora_cfg.exclude_modules "
     "policy.dtensor_cfg.lora_cfg.match_all_linear policy.optimizer.name "
     "policy.sequence_packing.train_mb_tokens "
     "policy.sequence_packing.logprob_mb_tokens "
     "policy.sequence_packing.algorithm "
     "policy.sequence_packing.microbatch_order "
     "policy.sequence_packing.sequence_length_round  dpo* dpo.val_batches policy.megatron_cfg.** "
     "policy.dynamic_batching.train_mb_tokens "
     "policy.dynamic_batching.logprob_mb_tokens "
     "policy.dynamic_batching.sequence_length_round"},
    {"logging, saving and scheduling",
     "checkpointing.** logger* sft* sft.val_batches policy.scheduler* policy.optimizer.kwargs* "
     "policy.tokenizer* "
     "policy.max_grad_norm policy.train_global_batch_size rm* "
     "policy.make_sequence_length_divisible_by"},
    {"data", "data* env* loss_fn* reward*"},
    {"details that change no tensor's size",
     "policy.dtensor_cfg._v2 policy.dtensor_cfg.enabled policy.dtensor_cfg.env_vars "
     "policy.dtensor_cfg.custom_parallel_plan policy.dtensor_cfg.automodel_kwargs "
     "policy.logprob_* policy.refit_* policy.offload_optimizer_for_logprob "
     "policy.dtensor_cfg.clear_cache_every_n_steps"},
});

constexpr auto kAdapterGroups = std::to_array<HarmlessGroup>({
    {"numbers that change no tensor's size",
     "lora_alpha use_rslora bias lora_bias fan_in_fan_out init_lora_weights inference_mode "
     "task_type revision auto_mapping alpha_pattern loftq_config megatron_config megatron_core "
     "layers_pattern layer_replication corda_config eva_config qalora_group_size peft_version "
     "ensure_weight_tying use_qalora exclude_modules arrow_config alora_invocation_tokens"},
    {"read where another key asks for it", "r init_r target_modules lora_dropout"},
});

// Of a config.json the last part of a path counts as well: its sections repeat the same keys.
constexpr auto kModelConfigGroups = std::to_array<HarmlessGroup>({
    {"read with the file",
     "torch_dtype dtype quantization_config model_type architectures max_position_embeddings "
     "sample_size compression_config"},
    {"texts and generation",
     "*_token_id *_token_index *_token_ids *_version auto_map id2label label2id "
     "task_specific_params top_k top_p temperature num_beams* *_length length_penalty do_sample "
     "early_stopping diversity_penalty typical_p repetition_penalty *no_repeat_ngram_size "
     "bad_words_ids num_return_sequences output_scores return_dict_in_generate suppress_tokens "
     "begin_suppress_tokens remove_invalid_values prefix tokenizer_class finetuning_task "
     "problem_type processor_class name_or_path model_name license language _name_or_path "
     "forced_decoder_ids generation_config max_new_tokens min_new_tokens"},
    {"private to the library", "_**"},
    {"what the library's calls return",
     "return_dict output_hidden_states output_attentions torchscript use_cache use_return_dict "
     "tf_legacy_loss use_bfloat16 chunk_size_feed_forward is_decoder is_encoder_decoder "
     "add_cross_attention tie_encoder_decoder gradient_checkpointing "
     "output_past keys_to_ignore_at_inference output_router_logits is_llama_config"},
    {"numbers that change no tensor's size",
     "*_eps *_epsilon *_std *_range *_coef *_scale *_factor *_theta *_alpha rope_* *.rope_* "
     "rotary_* *_multiplier *_scaling *_softcap* *_softcapping *_dropout *_pdrop dropout* "
     "*_dropout_prob *_drop_rate *_drop layerdrop *layerdrop drop_path* embd_pdrop resid_pdrop "
     "attn_pdrop hidden_act hidden_activation activation_function *_act *_act_fn act_fn "
     "query_pre_attn_scalar initializer* init_* *_init scale_attn* reorder_and_upcast_attn "
     "layer_norm_eps* layer_norm_epsilon norm_eps *jitter* *_loss_coef* norm_topk_prob "
     "routed_scaling_factor scoring_func topk_method topk_group n_group seq_aux aux_loss* "
     "summary_* classifier_* original_max_position_embeddings pretraining_tp attn_implementation "
     "attention_probs_dropout_prob logit_scale* logits_scaling projection_pdrop ep_size "
     "cache_implementation max_window_layers use_sliding_window position_embedding_type "
     "cond_drop_prob unsloth_* bos_id eos_id flow_shift shift_factor latents_mean latents_std "
     "relative_attention_max_distance scale_embedding layerscale_value swiglu_limit layer_types"},
    {"computed from other keys", "qk_head_dim"},
    {"layers that transformers leaves out", "num_nextn_predict_layers"},
    // ViT's pooler and decoder of masked images, CLIP's projections (the model of both towers reads
    // its own), DeBERTa's pooler, backbones, Whisper's alignment and augmentation.
    {"of other classes of the family",
     "encoder_stride pooler_* projection_dim out_features out_indices stage_names apply_layernorm "
     "reshape_hidden_states median_filter_width apply_spec_augment mask_time_* mask_feature_* "
     "use_weighted_layer_sum sparse_pred_ignore_index"},
    {"of the code that trained it, which transformers does not read",
     "n_ctx n_special predict_special_tokens offset_alibi skip_bias_add skip_bias_add_qkv "
     "masked_softmax_fusion bias_dropout_fusion slow_but_exact num_steps"},
});

using Patterns = std::vector<std::pair<std::string, std::string_view>>;  // pattern, reason

void append(std::span<const HarmlessGroup> groups, Patterns& patterns) {
  for (const HarmlessGroup& group : groups) {
    std::string_view rest = group.patterns;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const std::string pattern(rest.substr(0, end));
      if (pattern.starts_with('@')) {
        for (const std::string_view section : script_sections())
          patterns.emplace_back(std::string(section) + pattern.substr(1), group.reason);
      } else if (!pattern.empty()) {
        patterns.emplace_back(pattern, group.reason);
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

Patterns patterns_of(FileFormat format) {
  Patterns patterns;
  switch (format) {
    case FileFormat::kTrainingArguments:
      append(kTrainerGroups, patterns);
      append(kTrainingArgumentsGroups, patterns);
      break;
    case FileFormat::kAxolotl:
      append(kTrainerGroups, patterns);
      append(kAxolotlGroups, patterns);
      break;
    case FileFormat::kLlamaFactory:
      append(kTrainerGroups, patterns);
      append(kLlamaFactoryGroups, patterns);
      break;
    case FileFormat::kTorchtune: append(kTorchtuneGroups, patterns); break;
    case FileFormat::kTorchtitan: append(kTorchtitanGroups, patterns); break;
    case FileFormat::kLitgpt: append(kLitgptGroups, patterns); break;
    case FileFormat::kMsSwift:
      append(kTrainerGroups, patterns);
      append(kMsSwiftGroups, patterns);
      break;
    case FileFormat::kVerl: append(kVerlGroups, patterns); break;
    case FileFormat::kNemoAutomodel: append(kNemoAutomodelGroups, patterns); break;
    case FileFormat::kNemoRl: append(kNemoRlGroups, patterns); break;
    case FileFormat::kDeepSpeed: append(kDeepSpeedGroups, patterns); break;
    case FileFormat::kAccelerate: append(kAccelerateGroups, patterns); break;
    case FileFormat::kTrainYaml: append(kTrainYamlGroups, patterns); break;
    case FileFormat::kAdapter: append(kAdapterGroups, patterns); break;
    case FileFormat::kModelConfig: append(kModelConfigGroups, patterns); break;
    case FileFormat::kCommandLine:
      append(kTrainerGroups, patterns);
      append(harmless_flag_groups(), patterns);
      break;
    case FileFormat::kJob: break;
  }
  return patterns;
}

const Patterns& known_patterns(FileFormat format) {
  static const auto kAll = [] {
    std::array<Patterns, kEnumNames<FileFormat>.size()> all;
    for (const auto& [value, name] : kEnumNames<FileFormat>)
      all[static_cast<std::size_t>(value)] = patterns_of(value);
    return all;
  }();
  return kAll[static_cast<std::size_t>(format)];
}

constexpr std::size_t kMaxPath = 300;  // longer ones are nobody's

// `**` stands for any text, `*` for one that contains no word of a setting that changes memory:
// "save_*" is save_steps and not save_fp8_cache. A `*` in front is free, since the last word says
// what a key is ("*_dropout" is attention_dropout), and a section does not ("*.log_*").
bool matches(std::string_view pattern, std::string_view text, bool is_first = true) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const bool is_alone = pattern.find('*', star + 1) == std::string_view::npos;
  const bool is_prefix = is_first && star == 0 && (is_alone || pattern[1] == '.');
  const bool is_free = pattern.substr(star).starts_with("**") || is_prefix;
  text.remove_prefix(star);
  pattern.remove_prefix(star);
  pattern.remove_prefix(pattern.starts_with("**") ? 2 : 1);
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string_view any = text.substr(0, length);
    if (!is_free && !any.empty() && !concern_of(any, Node::string("set")).empty()) continue;
    if (matches(pattern, text.substr(length), false)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::pair<std::string, std::string_view>> harmless_patterns(FileFormat format) {
  return known_patterns(format);
}

std::optional<std::string_view> harmless_reason(FileFormat format, std::string_view path) {
  if (path.size() > kMaxPath) return std::nullopt;
  const bool has_sections = format == FileFormat::kModelConfig;
  const std::string_view last = has_sections ? path.substr(path.rfind('.') + 1) : path;
  for (const auto& [pattern, reason] : known_patterns(format)) {
    const bool is_section =
        pattern.ends_with(".**") && path == pattern.substr(0, pattern.size() - 3);
    if (is_section || matches(pattern, path) || matches(pattern, last)) return reason;
  }
  return std::nullopt;
}

}  // namespace memfathom
