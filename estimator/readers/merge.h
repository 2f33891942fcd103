// Merge: several files of a training set-up as one job.
#pragma once

#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/job/patch.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

struct MergedJob {
  Node document;
  std::vector<ParsedFile> files;
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;
  std::vector<std::string> warnings;  // contradictions, each with both files
  std::vector<UnreadKey> unread;      // of all files
  bool is_model_named = false;        // no file describes the model, one names it
  std::string model_name;             // as that file writes it: "acme/Llama-3-8B-AWQ"
  bool is_model_guessed = false;      // only the size in its name is known
  bool is_length_assumed = false;     // no file says how long the samples are
};

// A later file wins over an earlier one, and a contradiction is named. What a DeepSpeed file leaves
// open stays open: resolve.h.
MergedJob merge_files(std::vector<ParsedFile> files);

// Throws Error(kInput) with both names if two files are for different models.
void refuse_two_models(const std::vector<ParsedFile>& files);

// Whether the document says which model; what of it learns may be known before.
bool has_model(const Node& document);

// From transformers 5 on, a model comes in the type its config.json names, and the Trainer's bf16
// is autocast over that: the document is made to say so, and the notes tell.
void keep_stored_type(const std::vector<ParsedFile>& files, Node& document, MergedJob& notes);

}  // namespace memfathom
