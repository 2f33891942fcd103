"""Seq2SeqTrainer that generates for its metrics between the steps, groups by length and smooths labels."""
import numpy as np
from datasets import Dataset
from transformers import AutoConfig, AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq, EarlyStoppingCallback, Seq2SeqTrainer, Seq2SeqTrainingArguments
from toy import text, tokenizer

tok = tokenizer()
model = AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model("bart", vocab_size=1000, d_model=256, encoder_layers=3, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=1024,
                                                               decoder_ffn_dim=1024, pad_token_id=0, eos_token_id=1, bos_token_id=1, decoder_start_token_id=1, forced_eos_token_id=1, max_position_embeddings=256))

def prepared(rows):
    batch = tok(rows["source"], max_length=128, truncation=True)
    batch["labels"] = tok(rows["target"], max_length=32, truncation=True)["input_ids"]
    return batch

def metrics(result):
    predictions, labels = result
    predictions = np.where(predictions != -100, predictions, tok.pad_token_id)
    labels = np.where(labels != -100, labels, tok.pad_token_id)
    a, b = tok.batch_decode(predictions, skip_special_tokens=True), tok.batch_decode(labels, skip_special_tokens=True)
    return {"match": float(np.mean([x == y for x, y in zip(a, b)])), "gen_len": float(np.mean([np.count_nonzero(p) for p in predictions]))}

raw = Dataset.from_dict({"source": [text(30 + 2 * i, i) for i in range(1, 65)], "target": [text(10 + i % 20, i) for i in range(1, 65)]})
split = raw.train_test_split(0.25, seed=1).map(prepared, batched=True, remove_columns=["source", "target"])
args = Seq2SeqTrainingArguments(output_dir="/tmp/memfathom-capture-out", per_device_train_batch_size=8, per_device_eval_batch_size=16, gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=1,
                                max_steps=4, predict_with_generate=True, generation_max_length=24, generation_num_beams=2, label_smoothing_factor=0.1, fp16=True, logging_steps=1, report_to=[], save_strategy="no",
                                metric_for_best_model="match", dataloader_num_workers=0)
Seq2SeqTrainer(model=model, args=args, train_dataset=split["train"], eval_dataset=split["test"], processing_class=tok, data_collator=DataCollatorForSeq2Seq(tok, model=model, pad_to_multiple_of=8),
               compute_metrics=metrics).train()
