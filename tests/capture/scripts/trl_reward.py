from datasets import Dataset
from transformers import AutoModelForSequenceClassification
from trl import RewardConfig, RewardTrainer
from toy import llama, text, tokenizer

model = AutoModelForSequenceClassification.from_config(llama(num_labels=1))
rows = range(1, 33)
data = Dataset.from_dict({"chosen": [text(120, i + 1) for i in rows], "rejected": [text(90, i + 2) for i in rows]})
config = RewardConfig("/tmp/memfathom-capture-out", per_device_train_batch_size=4, max_length=256, max_steps=4, bf16=True, logging_steps=1, report_to=[], save_strategy="no")
RewardTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer()).train()
