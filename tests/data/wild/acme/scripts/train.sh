pip install acme
torchrun --nproc_per_node 2 train.py --model_name_or_path Qwen/Qwen2.5-0.5B --max_length 128 \
  --per_device_train_batch_size 1 --bf16 --output_dir out
