// ParsedFile: what one file of somebody's training set-up says about the job.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "core/document_path.h"
#include "estimator/job/patch.h"
#include "estimator/job/unread_key.h"

namespace memfathom {

enum class FileFormat : std::uint8_t {
  kJob,                // our own
  kModelConfig,        // config.json of transformers or diffusers, or a folder with one
  kAdapter,            // adapter_config.json of PEFT
  kTrainingArguments,  // of transformers' Trainer, as JSON
  kDeepSpeed,
  kAccelerate,
  kAxolotl,
  kLlamaFactory,
  kTorchtune,
  kTorchtitan,
  kLitgpt,
  kMsSwift,
  kVerl,
  kNemoAutomodel,
  kNemoRl,
  kTrainYaml,    // a script's own YAML: batch, height, width, hidden_dim, ...
  kCommandLine,  // flags of a training program that has no format of its own
};

template <>
inline constexpr auto kEnumNames<FileFormat> =
    std::to_array<EnumName<FileFormat>>({{FileFormat::kJob, "job"},
                                         {FileFormat::kModelConfig, "model configuration"},
                                         {FileFormat::kAdapter, "adapter configuration"},
                                         {FileFormat::kTrainingArguments, "TrainingArguments"},
                                         {FileFormat::kDeepSpeed, "DeepSpeed"},
                                         {FileFormat::kAccelerate, "accelerate"},
                                         {FileFormat::kAxolotl, "axolotl"},
                                         {FileFormat::kLlamaFactory, "LLaMA-Factory"},
                                         {FileFormat::kTorchtune, "torchtune"},
                                         {FileFormat::kTorchtitan, "torchtitan"},
                                         {FileFormat::kLitgpt, "LitGPT"},
                                         {FileFormat::kMsSwift, "ms-swift"},
                                         {FileFormat::kVerl, "verl"},
                                         {FileFormat::kNemoAutomodel, "NeMo Automodel"},
                                         {FileFormat::kNemoRl, "NeMo RL"},
                                         {FileFormat::kTrainYaml, "training YAML"},
                                         {FileFormat::kCommandLine, "command line"}});

const char* to_string(FileFormat format);

// How a value of the file and the job's value of the same meaning correspond.
enum class FieldKind : std::uint8_t {
  kPlain,          // the same value
  kCheckpointing,  // true | false and full | none
  kDevice,         // cpu | none | nvme and cpu | none
  kOffload,        // true | false and cpu | none
  kOptimizer,      // the library's name and ours
  kFlash,          // true and flash
  kFlag,           // true | false
  kGibibytes,      // 24 and 24GiB
};

struct Field {
  std::string_view job;   // "training.batch_size"
  std::string_view file;  // "train_micro_batch_size_per_gpu"; dotted
  FieldKind kind = FieldKind::kPlain;
};

struct ParsedFile {
  std::string file;
  FileFormat format = FileFormat::kJob;
  Node content;                    // the file's own tree, or that of the section
  Patch settings;                  // keys of the job that it decides
  std::vector<std::string> autos;  // keys of the file that are left to the integration
  std::string base_model;          // the name of the model it is for, as the file writes it
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;    // what it asks for and the estimate leaves out
  std::vector<std::string> named_sections;  // keys that stand in not_modelled with all below them
  std::vector<UnreadKey> unread;            // neither read nor harmless for memory
  std::string section;  // a DeepSpeed configuration inside another file: the key it stands under
  bool is_command_line = false;  // nothing is written back to it
  // What the library takes where no optimizer is named (default_optimizer.h); null: PyTorch's own.
  Node default_optimizer;

  void set(std::string_view key, Node value) {
    settings.push_back({std::string(key), std::move(value)});
  }
};

// Where one of these keys is true, samples are packed or padded: all have the greatest length.
void set_packed(std::initializer_list<std::string_view> keys, ParsedFile& parsed);

// Takes every field that the file has; "auto" goes to `autos`.
void read_fields(std::span<const Field> fields, ParsedFile& parsed);
// Lists the keys of the file that are set (and not false, 0 or empty) but not modelled; each leaves
// the verdict open.
void list_not_modelled(std::span<const std::string_view> keys, ParsedFile& parsed);

// Names a setting whose memory the estimate leaves out (another model, a server): `sentence` stands
// under not modelled, and the verdict stays open.
void leave_open(std::string_view key, std::string_view concerns, std::string sentence,
                ParsedFile& parsed);
// The same for a setting that no key of the file says alone; `named` stands in the answer.
void withhold(std::string_view named, std::string_view concerns, std::string sentence,
              ParsedFile& parsed);

// Whether a value turns something on. YAML 1.1, which Python's tools read, has words for it.
bool is_on(const Node& value);
// Whether it is a word or a number that turns something on or off.
bool is_switch(const Node& value);

// Drops what the file decides about a key of the job and all below it.
void drop_settings(std::string_view key, ParsedFile& parsed);

// The job's value as the file says it.
Node to_file_value(FieldKind kind, const Node& value);

// Which format a tree has. Nothing of it recognised: Error(kInput).
FileFormat detect_format(const Node& tree);
// The fields of a format, for writing changes back; empty for kJob, whose keys are the job's.
std::span<const Field> fields_of(FileFormat format);

// Where files of a format hold a DeepSpeed configuration ("deepspeed" only) or name one by its
// path.
std::span<const std::string_view> deepspeed_keys(FileFormat format);

// `tree` is the whole file. Throws Error(kInput).
ParsedFile read_tree(const Node& tree, FileFormat format);

// The reading and those of what it holds: a DeepSpeed configuration in a Trainer's file.
void read_with_sections(const Node& tree, FileFormat format, std::vector<ParsedFile>& parsed_files);

// A file, or a folder with a model in it (then perhaps several readings: config and adapter).
std::vector<ParsedFile> read_path(const std::string& path);

}  // namespace memfathom
