"""sentence-transformers: a bi-encoder of a small BERT, in-batch negatives, its trainer, from texts."""
import toy
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel

BertModel(BertConfig(vocab_size=1000, hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=1024)).save_pretrained("encoder")
toy.tokenizer().save_pretrained("encoder")
words = Transformer("encoder", max_seq_length=64)
model = SentenceTransformer(modules=[words, Pooling(words.get_word_embedding_dimension())], device="cuda")
data = Dataset.from_list([{"anchor": toy.text(20, i + 1), "positive": toy.text(40, i + 2)} for i in range(128)])
args = SentenceTransformerTrainingArguments("out", per_device_train_batch_size=16, num_train_epochs=1, fp16=False, bf16=True, report_to="none", save_strategy="no", logging_steps=1)
SentenceTransformerTrainer(model, args, train_dataset=data, loss=MultipleNegativesRankingLoss(model)).train()
