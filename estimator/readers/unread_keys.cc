#include "estimator/readers/unread_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "core/suggest.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxNamed = 50;      // keys in one sentence; JSON has all
constexpr std::size_t kMaxUnread = 10000;  // keys that are kept of one file

struct TellingWord {
  std::string_view word;
  std::string_view concerns;
};

// The first that a key contains decides. A word of up to four letters must stand alone or at the
// beginning of a part of the key: "bit" is in "bits" and "8bit", not in "arbitrary".
constexpr auto kTellingWords = std::to_array<TellingWord>({
    {"batch", "batch"},
    {"accumul", "batch"},
    {"prior_preservation", "batch"},
    {"lora", "adapters"},
    {"dora", "adapters"},
    {"adapter", "adapters"},
    {"peft", "adapters"},
    {"rank", "adapters"},
    {"galore", "adapters"},
    {"apollo", "optimizer"},
    {"badam", "optimizer"},
    {"lomo", "optimizer"},
    {"lisa", "model"},
    {"spectrum", "model"},
    {"reft", "adapters"},
    {"liger", "memory"},
    {"target_modules", "adapters"},
    {"optim", "optimizer"},
    {"quant", "precision"},
    {"gptq", "precision"},
    {"awq", "precision"},
    {"bnb", "precision"},
    {"qat", "precision"},
    {"bit", "precision"},
    {"bits", "precision"},
    {"4bit", "precision"},
    {"8bit", "precision"},
    {"16bit", "precision"},
    {"dtype", "precision"},
    {"precision", "precision"},
    {"amp", "precision"},
    {"autocast", "precision"},
    {"float", "precision"},
    {"fp4", "precision"},
    {"nvfp4", "precision"},
    {"fp8", "precision"},
    {"fp16", "precision"},
    {"fp32", "precision"},
    {"bf16", "precision"},
    {"half", "precision"},
    {"offload", "sharding"},
    {"zero", "sharding"},
    {"zero1", "sharding"},
    {"zero2", "sharding"},
    {"zero3", "sharding"},
    {"fsdp", "sharding"},
    {"fsdp2", "sharding"},
    {"shard", "sharding"},
    {"parallel", "sharding"},
    {"bucket", "sharding"},
    {"deepspeed", "sharding"},
    {"megatron", "sharding"},
    {"device_map", "sharding"},
    {"num_gpus", "sharding"},
    {"num_processes", "sharding"},
    {"nproc_per_node", "sharding"},
    {"world_size", "sharding"},
    {"partition", "sharding"},
    {"strategy", "sharding"},
    {"num_nodes", "sharding"},
    {"tp", "sharding"},
    {"pp", "sharding"},
    {"cp", "sharding"},
    {"sp", "sharding"},
    {"checkpointing", "checkpointing"},
    {"checkpoint", "checkpointing"},
    {"recompute", "checkpointing"},
    {"attention", "attention"},
    {"attn", "attention"},
    {"flash", "attention"},
    {"xformers", "attention"},
    {"kv", "attention"},
    {"vocab", "model"},
    {"layer", "model"},
    {"hidden", "model"},
    {"channel", "model"},
    {"width", "model"},
    {"depth", "model"},
    {"head", "model"},
    {"heads", "model"},
    {"embed", "model"},
    {"expert", "model"},
    {"output_router_logits", "model"},
    {"block", "model"},
    {"modes", "model"},
    {"mode1", "model"},
    {"ffn", "model"},
    {"mlp", "model"},
    {"filters", "model"},
    {"backbone", "model"},
    {"encoder", "model"},
    {"decoder", "model"},
    {"teacher", "model"},
    {"reward", "model"},
    {"freeze", "model"},
    {"frozen", "model"},
    {"trainable", "model"},
    {"model", "model"},
    {"ema", "memory"},
    {"memory", "memory"},
    {"vram", "memory"},
    {"compile", "memory"},
    {"cache", "memory"},
    {"vllm", "memory"},
    {"master", "optimizer"},
    {"topk", "model"},
    {"tower", "model"},
    {"unet", "model"},
    {"projector", "model"},
    {"critic", "model"},
    {"draft", "model"},
    {"mtp", "model"},
    {"gpu", "sharding"},
    {"gpus", "sharding"},
    {"nodes", "sharding"},
    {"devices", "sharding"},
    {"swap", "memory"},
    {"chunk", "memory"},
    {"capacity", "sizes"},
    {"sequence", "sizes"},
    {"packed", "sizes"},
    {"dim", "sizes"},
    {"dims", "sizes"},
    {"size", "sizes"},
    {"length", "sizes"},
    {"len", "sizes"},
    {"seq", "sizes"},
    {"seqlen", "sizes"},
    {"maxlen", "sizes"},
    {"token", "sizes"},
    {"resolution", "sizes"},
    {"image", "sizes"},
    {"pixel", "sizes"},
    {"frame", "sizes"},
    {"height", "sizes"},
    {"patch", "sizes"},
    {"packing", "sizes"},
    {"generation", "sizes"},
    {"completion", "sizes"},
});

// Values that only settings of memory have.
constexpr auto kTellingValues = std::to_array<TellingWord>({
    {"bf16", "precision"},
    {"fp16", "precision"},
    {"bfloat16", "precision"},
    {"float16", "precision"},
    {"half", "precision"},
    {"fp8", "precision"},
    {"int8", "precision"},
    {"int4", "precision"},
    {"nf4", "precision"},
    {"fp4", "precision"},
    {"mxfp4", "precision"},
    {"nvfp4", "precision"},
    {"gptq", "precision"},
    {"awq", "precision"},
    {"4bit", "precision"},
    {"8bit", "precision"},
    {"float32", "precision"},
    {"fp32", "precision"},
    {"adamw", "optimizer"},
    {"adam", "optimizer"},
    {"sgd", "optimizer"},
    {"adafactor", "optimizer"},
    {"lion", "optimizer"},
    {"rmsprop", "optimizer"},
    {"adagrad", "optimizer"},
    {"muon", "optimizer"},
    {"adamw_torch", "optimizer"},
    {"adamw_8bit", "optimizer"},
    {"adamw8bit", "optimizer"},
    {"adamw_bnb_8bit", "optimizer"},
    {"paged_adamw_8bit", "optimizer"},
    {"paged_adamw_32bit", "optimizer"},
    {"lora", "adapters"},
    {"qlora", "adapters"},
    {"dora", "adapters"},
    {"unsloth", "memory"},
    {"full_shard", "sharding"},
    {"zero3", "sharding"},
    {"zero2", "sharding"},
    {"flash_attention_2", "attention"},
});

std::string lower(std::string_view text) {
  std::string folded(text);
  for (char& c : folded)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return folded;
}

bool contains_word(std::string_view key, std::string_view word) {
  constexpr std::size_t kLongWord = 5;
  for (std::size_t at = key.find(word); at != std::string_view::npos; at = key.find(word, at + 1)) {
    if (word.size() >= kLongWord) return true;
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || key[at - 1] == '_' || key[at - 1] == '.' ||
                        std::isdigit(static_cast<unsigned char>(key[at - 1])) != 0;
    const bool ends = end == key.size() || key[end] == '_' || key[end] == '.' ||
                      std::isdigit(static_cast<unsigned char>(key[end])) != 0 || key[end] == 's';
    if (begins && ends) return true;
  }
  return false;
}

std::string_view concern_of_name(std::string_view key) {
  const std::string folded = lower(key);
  for (const TellingWord& telling : kTellingWords) {
    if (contains_word(folded, telling.word)) return telling.concerns;
  }
  return {};
}

// Words that make any value telling: "hybrid_parallel", "low_level_zero", "torch_fsdp".
constexpr auto kTellingParts = std::to_array<TellingWord>({
    {"parallel", "sharding"},
    {"level_zero", "sharding"},
    {"zero1", "sharding"},
    {"zero2", "sharding"},
    {"zero3", "sharding"},
    {"fsdp", "sharding"},
    {"fsdp2", "sharding"},
    {"gemini", "sharding"},
    {"deepspeed", "sharding"},
    {"megatron", "sharding"},
    {"offload", "sharding"},
    {"lora", "adapters"},
    {"qlora", "adapters"},
    {"4bit", "precision"},
    {"8bit", "precision"},
    {"bf16", "precision"},
    {"fp16", "precision"},
    {"fp8", "precision"},
});

// A name of one or a few words, and no path or sentence.
bool is_setting(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  return text.size() <= kLongest && text.find_first_of("/\\ :{$") == std::string_view::npos;
}

std::string_view concern_of_text(std::string_view text) {
  const std::string folded = lower(text.substr(text.rfind('.') + 1));  // "torch.bfloat16"
  for (const TellingWord& telling : kTellingValues) {
    if (folded == telling.word) return telling.concerns;
  }
  if (!is_setting(text)) return {};
  for (const TellingWord& telling : kTellingParts) {
    if (contains_word(folded, telling.word)) return telling.concerns;
  }
  return {};
}

// A value that turns something off, as most libraries have it by default.
bool is_off(const Node& value) {
  if (value.is_bool()) return !value.as_bool();
  if (value.is_number()) return value.unchecked_number() == 0;
  if (!value.is_string()) return false;
  const std::string text = lower(value.as_string());
  return text == "no" || text == "none" || text == "false" || text == "off" || text == "auto" ||
         text == "ddp";
}

bool is_empty(const Node& value) {
  return value.is_null() || (value.is_string() && value.as_string().empty()) ||
         (value.is_list() && value.items().empty()) || (value.is_map() && value.entries().empty());
}

bool is_below(std::string_view path, std::string_view section) {
  return path.starts_with(section) &&
         (path.size() == section.size() || path[section.size()] == '.');
}

// Keys of a config.json that change nothing as nearly every file has them, and do where they are
// set (transformers' configuration_utils.py, modeling_utils.py and modeling_bert.py): layers that
// read another network's states, attention maps and hidden states that are kept, the loss that
// balances experts, checkpointing, another attention.
bool is_set_to_change(const Node& entry) {
  const std::string_view key = entry.key();
  if (entry.is_bool()) {
    return entry.as_bool() && (key == "add_cross_attention" || key == "output_attentions" ||
                               key == "output_hidden_states" || key == "use_weighted_layer_sum" ||
                               key == "output_router_logits" || key == "gradient_checkpointing");
  }
  if (!entry.is_string()) return false;
  if (key == "position_embedding_type") return entry.as_string().starts_with("relative_key");
  return (key == "attn_implementation" || key == "_attn_implementation") &&
         entry.as_string() == "eager";
}

// Sizes that published files have under two names; transformers maps the second to the first
// (attribute_map), and gpt-oss repeats the number of its experts.
struct SecondName {
  std::string_view first, second;
  bool both_looked_up = false;  // by readers that then take the first
};

constexpr auto kSecondNames = std::to_array<SecondName>({
    {"encoder_layers", "num_hidden_layers"},
    {"n_layer", "num_hidden_layers"},
    {"n_layers", "num_hidden_layers"},
    {"num_layers", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_heads", "num_attention_heads"},
    {"num_heads", "num_attention_heads"},
    {"encoder_attention_heads", "num_attention_heads"},
    {"num_hidden_layers", "n_layer", true},
    {"num_attention_heads", "n_head", true},
    {"d_model", "hidden_size"},
    {"n_embd", "hidden_size"},
    {"hidden_size", "n_embed", true},
    {"num_experts_per_tok", "experts_per_token"},
});

// What a section is about by its name, where nothing in it was read: {lora: {r: 8}}. Names of
// models and sizes stand over descriptions of data too, and "checkpoint" over what is saved.
std::string_view concern_of_section(const Node& section) {
  for (const char* key : {"enabled", "enable"}) {
    const Node* turns_on = section.find(key);
    if (turns_on != nullptr && is_off(*turns_on)) return {};
  }
  const std::string_view concern = concern_of_name(section.key());
  const bool is_vague = concern == "model" || concern == "sizes" || concern == "checkpointing" ||
                        concern == "optimizer";
  return is_vague ? std::string_view() : concern;
}

// Walks a file's tree and decides about each leaf.
class Collector {
 public:
  Collector(const KeyRecorder& recorder, ParsedFile& parsed)
      : recorder_(recorder), parsed_(parsed), root_(parsed.content.path()) {}

  void collect(const Node& map, bool is_seen, std::string_view of_section = {}) {
    for (const Node& entry : map.entries()) {
      const bool is_read = is_seen && recorder_.looked_up().contains(entry.path());
      if (is_empty(entry)) continue;
      if (is_accounted_for(entry)) {
        if (entry.is_map() && !is_named_section(entry)) collect_telling(entry);
        continue;
      }
      if (entry.is_map()) {
        const std::string_view own = is_read ? "" : concern_of_section(entry);
        collect(entry, is_read, own.empty() && !is_read ? of_section : own);
      } else if (!is_read || contradicts_another(entry)) {
        add(entry, of_section);
      }
    }
  }

 private:
  std::string_view relative(std::string_view path) const {
    if (!root_.empty() && path.size() > root_.size()) path.remove_prefix(root_.size() + 1);
    return path;
  }

  // A section that is harmless as a whole may still hold a setting that changes memory.
  void collect_telling(const Node& map) {
    for (const Node& entry : map.entries()) {
      const bool is_read = recorder_.looked_up().contains(entry.path());
      if (is_read || is_empty(entry) || is_accounted_for(entry)) continue;
      if (entry.is_map()) {
        collect_telling(entry);
      } else if (is_telling_anywhere(concern_of(entry.key(), entry))) {
        add(entry);
      }
    }
  }

  // Sizes and names of models stand in descriptions of data and tokenizers as well.
  static bool is_telling_anywhere(std::string_view concern) {
    return !concern.empty() && concern != "model" && concern != "sizes" && concern != "memory";
  }

  bool is_accounted_for(const Node& entry) const {
    const bool is_harmless =
        harmless_reason(parsed_.format, relative(entry.path())) && !changes_model(entry);
    return is_harmless || repeats_another(entry) || is_named_section(entry);
  }

  bool is_named_section(const Node& entry) const {
    return std::any_of(
        parsed_.named_sections.begin(), parsed_.named_sections.end(),
        [&](const std::string& section) { return is_below(relative(entry.path()), section); });
  }

  bool changes_model(const Node& entry) const {
    return parsed_.format == FileFormat::kModelConfig && is_set_to_change(entry);
  }

  // The number under the other name in the same section, if it was read there.
  const Node* read_number(const Node& entry, std::string_view other) const {
    const std::string_view path = entry.path();
    const std::string first =
        std::string(path.substr(0, path.size() - entry.key().size())) + std::string(other);
    const Node* value = value_at(parsed_.content, relative(first));
    const bool is_read =
        value != nullptr && value->is_int() && recorder_.looked_up().contains(first);
    return is_read ? value : nullptr;
  }

  bool repeats_another(const Node& entry) const {
    if (parsed_.format != FileFormat::kModelConfig || !entry.is_int()) return false;
    return std::any_of(kSecondNames.begin(), kSecondNames.end(), [&](const SecondName& name) {
      if (name.second != entry.key()) return false;
      const Node* value = read_number(entry, name.first);
      return value != nullptr && value->unchecked_number() == entry.unchecked_number();
    });
  }

  // The second name was looked up and not used; where it says the same, repeats_another() knows.
  bool contradicts_another(const Node& entry) const {
    if (parsed_.format != FileFormat::kModelConfig || !entry.is_int()) return false;
    return std::any_of(kSecondNames.begin(), kSecondNames.end(), [&](const SecondName& name) {
      return name.both_looked_up && name.second == entry.key() &&
             read_number(entry, name.first) != nullptr;
    });
  }

  // The key of the same section that the reader looked for and this one resembles.
  std::string nearest_key(const Node& entry) const {
    const std::string_view path = entry.path();
    const std::string_view section = path.substr(0, path.size() - entry.key().size());
    const std::set<std::string>& known = recorder_.looked_up();
    for (auto at = known.lower_bound(std::string(section)); at != known.end(); ++at) {
      if (!at->starts_with(section)) break;
      const std::string_view name = std::string_view(*at).substr(section.size());
      if (is_near_miss(entry.key(), name) && !is_set(*at)) return std::string(relative(*at));
    }
    return "";
  }

  // A key that the file has as well was not misspelled.
  bool is_set(const std::string& path) const {
    return value_at(parsed_.content, relative(path)) != nullptr;
  }

  // Libraries write many flags and factors into a config.json; what makes a tensor larger is a
  // number of something.
  bool may_concern(const Node& entry) const {
    return parsed_.format != FileFormat::kModelConfig || changes_model(entry) ||
           (entry.is_int() && entry.unchecked_number() > 1);
  }

  // A key of no size in a section about memory: {quantization: {seed: 1}}.
  bool is_harmless_alone(const Node& entry) const {
    return harmless_reason(parsed_.format, entry.key()).has_value() ||
           harmless_reason(FileFormat::kCommandLine, entry.key()).has_value();
  }

  void add(const Node& entry, std::string_view of_section = {}) {
    if (parsed_.unread.size() >= kMaxUnread) return;
    UnreadKey key{parsed_.file, entry.path(), "", nearest_key(entry), "", ""};
    if (!key.nearest.empty() && !is_off(entry))
      key.concerns = concern_of_name(key.nearest.substr(key.nearest.rfind('.') + 1));
    if (key.concerns.empty() && may_concern(entry)) key.concerns = concern_of(entry.key(), entry);
    if (key.concerns.empty() && !of_section.empty() && may_concern(entry) && !is_off(entry) &&
        !is_harmless_alone(entry))
      key.concerns = of_section;
    parsed_.unread.push_back(std::move(key));
  }

  const KeyRecorder& recorder_;
  ParsedFile& parsed_;
  std::string root_;
};

}  // namespace

std::string_view concern_of(std::string_view key, const Node& value) {
  if (is_off(value)) return {};
  if (const std::string_view concern = concern_of_name(key); !concern.empty()) return concern;
  return value.is_string() ? concern_of_text(value.as_string()) : std::string_view();
}

void collect_unread_keys(const KeyRecorder& recorder, ParsedFile& parsed) {
  if (parsed.content.is_map()) Collector(recorder, parsed).collect(parsed.content, true);
}

std::string names_of(const std::vector<UnreadKey>& keys) {
  std::string names;
  for (std::size_t i = 0; i < std::min(keys.size(), kMaxNamed); ++i) {
    names += (i == 0 ? "" : ", ") + keys[i].key;
    if (!keys[i].value.empty() && keys[i].value != keys[i].key)
      names += fmt::format(" ({} is unknown)", keys[i].value);
    if (!keys[i].nearest.empty()) names += fmt::format(" (did you mean {}?)", keys[i].nearest);
  }
  if (keys.size() > kMaxNamed) names += fmt::format(" and {} more", keys.size() - kMaxNamed);
  return names;
}

std::vector<std::string> unread_sentences(const std::vector<UnreadKey>& keys) {
  std::vector<std::string> sentences;
  std::vector<std::string> files;
  for (const UnreadKey& key : keys) {
    if (std::find(files.begin(), files.end(), key.file) == files.end()) files.push_back(key.file);
  }
  for (const std::string& file : files) {
    std::vector<UnreadKey> telling, others;
    for (const UnreadKey& key : keys) {
      if (key.file == file) (key.concerns.empty() ? others : telling).push_back(key);
    }
    const bool may_change = !telling.empty();
    telling.insert(telling.end(), others.begin(), others.end());
    sentences.push_back(
        fmt::format("{}: these keys were not read: {}; {}", file, names_of(telling),
                    may_change ? "they may affect memory"
                               : "none of their names suggests a setting that affects memory"));
  }
  return sentences;
}

}  // namespace memfathom
