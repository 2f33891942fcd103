import torch
from datasets import Dataset
from transformers import AutoConfig, AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments
from toy import text, tokenizer

tok = tokenizer()
config = AutoConfig.for_model("t5", vocab_size=1000, d_model=512, d_ff=1024, num_layers=4, num_heads=8, d_kv=64, decoder_start_token_id=0)
model = AutoModelForSeq2SeqLM.from_config(config)
def encode(row):
    return tok(row["source"], truncation=True, max_length=256) | {"labels": tok(row["target"], truncation=True, max_length=64)["input_ids"]}
data = Dataset.from_dict({"source": [text(100 + i, i) for i in range(1, 33)], "target": [text(30, i) for i in range(1, 33)]}).map(encode, remove_columns=["source", "target"])
args = Seq2SeqTrainingArguments("/tmp/memfathom-capture-out", per_device_train_batch_size=8, max_steps=4, predict_with_generate=True, optim="adafactor", logging_steps=1, report_to=[], save_strategy="no")
Seq2SeqTrainer(model, args, train_dataset=data, eval_dataset=data, data_collator=DataCollatorForSeq2Seq(tok, model)).train()
