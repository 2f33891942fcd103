// Reads jobs: a document into a Job, every key checked, every mistake one sentence.
#pragma once

#include <span>
#include <string_view>

#include "core/document.h"
#include "estimator/job/job.h"
#include "estimator/models/resolve_model.h"

namespace memfathom {

// The whole job, resolved: files that its model names are read here and never again. Throws
// Error(kInput).
Job read_job(const Node& document, const ModelFiles& files = ModelFiles());

// The same for a document that was changed from `original`'s: where the model is the same, it is
// shared and no file is opened.
Job read_variant(const Node& document, const Job& original, const ModelFiles& files = ModelFiles());

// Its parts, for modules that override `training` keys and for other readers.
void read_training(const Node& node, TrainingSpec& training);
Precision read_precision(const Node& node);

std::span<const std::string_view> training_keys();

}  // namespace memfathom
