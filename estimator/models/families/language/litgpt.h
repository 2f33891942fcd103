// LitGPT: its one model class, which runs the configs of several families in code of its own.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// For configs of Llama's kind, Phi, GPT-NeoX and Falcon; others are refused. The first batch of its
// loaders is the longest, so the logits of one iteration are gone when the next begins.
std::unique_ptr<Network> make_litgpt(Builder& builder, const Node& config,
                                     const ModelSettings& settings);

}  // namespace memfathom
