"""What a user would have fetched from the hub: a tokenizer, a dataset of words, a small configuration."""
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, PreTrainedTokenizerFast


def tokenizer():
    words = {f"w{i}": i + 3 for i in range(997)} | {"<pad>": 0, "<eos>": 1, "<unk>": 2}
    raw = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    return made


def text(count, seed):
    return " ".join(f"w{seed * j % 900}" for j in range(1, count + 1))


def llama(**changes):
    shape = dict(hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8,
                 vocab_size=1000, max_position_embeddings=2048, pad_token_id=0, eos_token_id=1, bos_token_id=1)
    return AutoConfig.for_model("llama", **(shape | changes))
