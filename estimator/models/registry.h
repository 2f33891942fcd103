// Registry: every model family that can be built, one row each.
//
// The rows stand in families/families.h and, for the families whose models are Llama's with
// differences, in blocks/llama/llama_variant.cc. All functions may be called from several threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/model_family.h"

namespace memfathom {

std::span<const ModelFamily> model_families();

// The family that model_type or _class_name of `config` names; nullptr if it is not registered.
const ModelFamily* find_family(const Node& config);

// The language model of that model_type; nullptr if there is none.
const ModelFamily* find_language_family(std::string_view model_type);

// The traits of the family that `config` names. A family that is not registered has those of the
// one whose name its own begins with (t5gemma: t5), or else the usual ones.
FamilyTraits traits_of(const Node& config);

// Whether make_from_family() makes a network of it.
bool can_make(const Node& config);

// The network that `config` (the keys of config.json) describes; nullptr if its family is not
// registered. A bad value is Error(kInput) that names its file, line and key. Appends what had to
// be assumed to `assumptions`.
std::unique_ptr<Network> make_from_family(Builder& builder, const Node& config,
                                          const ModelSettings& settings,
                                          std::vector<std::string>& assumptions);

}  // namespace memfathom
