// Reads jobs: a document into a Job, every key checked, every mistake one sentence.
#pragma once

#include <span>
#include <string_view>

#include "core/document.h"
#include "estimator/job/job.h"

namespace memfathom {

// The whole job. Throws Error(kInput).
Job read_job(const Node& document);

// Its parts, for modules that override `training` keys and for other readers.
void read_training(const Node& node, TrainingSpec& training);
Precision read_precision(const Node& node);

std::span<const std::string_view> training_keys();

}  // namespace memfathom
