if [ -z "$X" ]; then X=1; else X=2; fi
for lr in 1e-4 1e-5; do
  case $X in a|b) Y=${Z:-"q r"};; *) Y=`hostname`;; esac
  read -r -d '' cmd <<-'END'
	openrlhf.cli.train_sft --pretrain a/b-7b --zero_stage 3
	END
  CUDA_VISIBLE_DEVICES=0,1 nohup deepspeed --module $cmd --lr $lr &> log &
done
swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --deepspeed zero2
python -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2-7B +a.b='[1,2]' "x=${#X}" "${A[@]}" "$((X * (2 + 3)))" "${X##*/}"
