#!/bin/bash
# Fine-tunes on one machine.
set -euo pipefail
export MODEL=${MODEL:-Qwen/Qwen2.5-7B}
GPUS=4
BATCH=2
ARGS=(
  --per_device_train_batch_size $BATCH   # per GPU
  --max_length $((1024 * 2))
  --gradient_checkpointing true
)
cat > ds.json << END
{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}
END
torchrun --nproc_per_node=$GPUS --master_port 29500 train.py \
  --model_name_or_path "$MODEL" \
  "${ARGS[@]}" \
  --deepspeed ds.json \
  --bf16 --output_dir "out/$(date +%s)" \
  2>&1 | tee train.log
