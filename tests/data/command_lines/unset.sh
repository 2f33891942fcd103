torchrun --nproc_per_node 2 train.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 1024 \
  --per_device_train_batch_size $BATCH --bf16 --output_dir out
