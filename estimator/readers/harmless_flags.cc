// Flags of training programs that do not change the memory, beside the Trainer's.
#include <array>

#include "estimator/readers/harmless_group.h"

namespace memfathom {
namespace {

constexpr auto kGroups = std::to_array<HarmlessGroup>({
    {"logging",
     "tag log_* log *_log logger* logger.* tracker_* *tensorboard* wandb* use_wandb *.wandb* "
     "timing_* profile* print_* eval_interval *.logger* trainer.project_name "
     "trainer.experiment_name trainer.test_freq with_tracking report_* logging.* exp_name "
     "experiment_name run_name entity job_name validation_prompt* num_validation_images "
     "validation_epochs validation_steps validation_image* sample_prompts sample_every* "
     "enable_tensorboard print_loss log_steps trainer.val_before_train "
     "trainer.log_val_generations"},
    {"saving and resuming",
     "save save_* save_strategy save_model_as save_precision save_model_step* save_model_epochs "
     "save_only_model save_optim no_save_optim no_load_optim merge_lora "
     "wandb_save dataloader_save dist_ckpt_save ckpt_fully_parallel_save load ckpt_* ckpt.* "
     "*_ckpt_* checkpointing_steps checkpoints_total_limit "
     "resume* finetune no_load_* load_optim load_rng no_save_* output_* out_dir *_output_dir "
     "*_save_dir dist_ckpt_* trainer.save_freq trainer.default_local_dir trainer.resume_mode "
     "trainer.max_*ckpt* exit_* use_dist_ckpt auto_detect_ckpt_format hub.* output_path "
     "snapshot_* export_* merge_* max_ckpt_* use_hf"},
    {"hub",
     "hub_* hub_model_id hub_strategy revision variant use_auth_token hub_token hf_token "
     "access_token use_hf"},
    {"scheduling",
     "checkpointing_epochs lr lr_* *_lr min_lr adam.lr adam.betas adam.weight_decay adam.eps "
     "adam_beta* adam_eps* "
     "adam_weight_decay* *_beta1 *_beta2 clip_grad max_norm train_iters epochs "
     "num_epochs max_epochs train_samples decay_* *.lr_warmup* *.optim.lr* *.optim.weight_decay "
     "*.optim.total* *.optim.warmup* *.optim.clip_grad *.optim.betas optim.lr* optim.weight_decay "
     "optim.betas optim.clip_grad optim.warmup* scale_lr "
     "trainer.critic_warmup num_warmup_steps rewarmup ppo_epochs "
     "max_train_steps max_train_epochs num_train_steps *_weight_decay weight_decay* "
     "init_method_std sample_batch_size image_interpolation_mode "
     "initializer_range seed *_seed train.max_epochs train.epochs train.max_steps train.lr* "
     "trainer.total_* train.max_tokens train.global_batch_size train.save_interval "
     "train.log_interval train.max_norm train.min_lr rampup_* override_opt* "
     "snr_gamma noise_offset min_snr_gamma prior_loss_weight guidance_scale "
     "conditioning_dropout_prob proportion_empty_prompts "
     "timestep_sampling discrete_flow_shift model_prediction_type weighting_scheme logit_mean "
     "logit_std mode_scale max_data_loader_n_workers persistent_data_loader_workers "
     "start_* end_* loss_scale* initial_loss_scale min_loss_scale *_loss_coef *_coeff* "
     "aux_loss_* *_warmup_ratio prodigy_* network_alpha optimizer_args "
     "network_weights"},
    {"when evaluation runs",
     "eval_* eval.* eval.max_new_tokens *eval_iters val_* validation_* test_* evaluation_* "
     "early_stop* skip_eval* "
     "compute_*metric* trainer.test_freq"},
    {"data",
     "data data_path data.val_batch_size cached_dataset cached_val_dataset data_dir data_file* "
     "data_cache_path data_args_path data_impl data_split "
     "data_root data_name data_output_path data.train* data.val* data.dataset* data.*_key* "
     "data.multiturn* data.filter* data.truncation data.shuffle data.image_key data.max_samples "
     "data.split data.seed data.num_workers data.return_* data.path data.json_path data.prompt* "
     "data.mask_prompt data.custom_cls* data.tokenizer* data.tool* data.input_template "
     "data.apply_chat_template data.train_fraction data.download_dir *_data_path train_data* "
     "valid_data* dataset* datasets* *_dataset* "
     "tokenizer* vocab_file merge_file train_file validation_file test_file *_column *_key "
     "instance_* class_* caption_* image_folder image_folders image_dir image_root imagenet_val "
     "imagenet_v2 zeroshot_* video_folder input_key input_template "
     "input_column prompt prompt_template prompt_data* prompt_column "
     "response_template response_column split* num_workers *num_workers* shuffle* mmap_* reset_* "
     "eod_* "
     "create_attention_mask* center_crop random_* num_class_images "
     "placeholder_token initializer_token learnable_property repeats target_column "
     "task_name task lang source_lang target_lang *_prefix *_field preprocessing* overwrite_* "
     "template system *_template* apply_chat_template max_train_samples max_eval_samples "
     "max_predict_samples max_samples pad_to_max_length version data_format mm_use_im_* "
     "image_aspect_ratio lazy_preprocess is_multimodal cache_dir *cache_path dataloader* "
     "enable_bucket bucket_* min_bucket_reso max_bucket_reso cache_latents* cache_text_encoder* "
     "reg_data_dir train_data_dir in_json keep_tokens "
     "max_token_length clip_skip color_aug flip_aug text_column image_column audio_column* "
     "interpolation* question_* answer_* context_column doc_stride n_best_size "
     "version_2_with_negative "
     "line_by_line mlm_probability columns model_author model_name_zh self_cognition* "
     "strict lazy_tokenize* truncation_strategy streaming* remove_unused_columns freq* "
     "trainer.balance_batch reward_model.reward_manager custom_reward_function* "
     "load_from_cache_file load_data_args external_plugins stream add_special_tokens prompt_path "
     "num_padding_at_beginning local_dir hflip real_prior "
     "custom_dataset algorithm.* prompt_data* input_template packing_samples"},
    {"launching",
     "local_rank node_rank master_* distributed_* nccl_* rdzv_* *_timeout* timeout* ddp_* "
     "use_ray ray_* runtime_env* address hostfile master_port deepspeed_port trainer.device "
     "trainer.ray* overlap_* tp_comm_* no_python accelerator device cuda num_cpu_threads* "
     "machine_rank main_process_* same_network rdzv_backend max_restarts standalone monitor* "
     "tee redirects role include exclude launcher m module no_local_rank force_multi debug "
     "container_* deepspeed_mpi actor_rollout_ref.model.use_shm pretrained_checkpoint "
     "use_checkpoint_args "
     "config_path config_name hydra.* working_dir"},
    {"numbers that change no tensor's size",
     "temperature top_p top_k min_p repetition_penalty num_beams rotary_* rope_* "
     "norm_epsilon layernorm_epsilon init_* no_bias* disable_bias_linear add_qkv_bias "
     "apply_layernorm_1p position_embedding_type squared_relu "
     "masked_softmax_fusion bias_*_fusion *_fusion no_*_fusion gradient_accumulation_fusion "
     "cross_entropy_fusion_impl attention_softmax_in_fp32 accumulate_allreduce_grads_in_fp32 "
     "transformer_impl use_mcore_models use_legacy_models make_vocab_size_divisible_by "
     "global_batch_size moe_router_* moe_aux_loss_coeff moe_token_* moe_permute_fusion "
     "moe_grouped_gemm moe_router_load_balancing_type moe_router_dtype qk_layernorm "
     "use_cpu_initialization "
     "kl_* init_kl_coef entropy_* clip_* *_clip eps_clip* adv_estimator "
     "allow_tf32 "
     "*.kl_loss* *.use_kl_* *.clip_ratio* *.entropy_coeff *.loss_agg_mode "
     "actor_rollout_ref.actor.optim.lr* "
     "overlong_filter dynamic_sample lmbda importance_sampling_level max_turns "
     "multi_turn_scheduler use_gym_env algo.* algo.kl_in_reward kl_in_reward "
     "bnb_4bit_compute_dtype fsdp_transformer_layer_cls_to_wrap *.policy_loss* "
     "rlhf_type beta gamma tf32 lora_alpha network_dropout lora.alpha ds.lora.alpha "
     "recompute_method fp8_amax* fp8_margin "
     "manual_gc* no_check_* calculate_per_token_loss ckpt_format "
     "variable_seq_lengths train_batch_size rollout_batch_size n_samples_per_prompt "
     "train.batch_size "
     "rollout.batch_size data.train_batch_size actor_rollout_ref.actor.ppo_mini_batch_size "
     "use_dpo_loss norm_adv* advantage* mm_projector_lr *_lr_scale "
     "push_to_hub use_distributed_optimizer_* async_save trust_remote_code *.trust_remote_code"},
    {"the inference engine's own",
     "vllm_** sglang_** rollout_batch_size actor_rollout_ref.hybrid_engine colocate_** "
     "async_* enforce_eager num_infer_workers sleep_level move_model_batches "
     "offload_model_when_rollout ref_num_nodes ref_num_gpus_per_node reward_pretrain "
     "reward_num_nodes reward_num_gpus_per_node critic_num_nodes critic_num_gpus_per_node "
     "critic_pretrain critic_learning_rate remote_rm_url enable_prefix_caching"},
    {"of the autoencoder and the text encoders, which are named as not counted",
     "no_half_vae network_train_unet_only"},
    {"captions and timesteps of kohya's scripts",
     "token_warmup_* token_warmup_min sample_sampler min_timestep max_timestep no_metadata "
     "caption_dropout_* caption_tag_dropout_rate secondary_separator"},
    {"speed only",
     "use_fast* use_fast_tokenizer use_slow_tokenizer use_kernels use_triton* no_bias_* "
     "set_grads_to_none lowram highvram mem_eff_attn_speed deterministic* attention_backend "
     "moe_shared_expert_overlap"},
});

}  // namespace

std::span<const HarmlessGroup> harmless_flag_groups() { return kGroups; }

}  // namespace memfathom
