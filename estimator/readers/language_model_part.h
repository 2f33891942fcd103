// Language part: what is counted of a model that is a language model with something beside it or a
// head of its own.
#pragma once

#include "core/document.h"
#include "estimator/readers/merge.h"

namespace memfathom {

// Puts the language model of a multimodal config (LLaVA, Qwen2-VL, ...) in the place of the whole,
// whose family is not known here, and says what is left out; says where a head that is not a
// language model's is counted as one.
void replace_by_language_model(Node& document, MergedJob& notes);

}  // namespace memfathom
