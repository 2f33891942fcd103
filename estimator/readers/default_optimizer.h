// Default optimizer: what a library takes where none of its files names an optimizer. The fused
// form of AdamW has no temporaries of the size of the weights, PyTorch's own default has.
#pragma once

#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

// That of transformers' Trainer, and of what is built on it; its form depends on the releases.
Node trainer_default_optimizer();
// That of axolotl.
Node fused_adamw();

// To be called when the job is complete, flags included. The last file with a default decides.
void assume_optimizer(const std::vector<ParsedFile>& files, Node& document,
                      std::vector<std::string>& assumptions);

}  // namespace memfathom
