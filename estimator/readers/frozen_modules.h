// Frozen modules: `freeze_vggt: true` of somebody's training YAML as the module of that name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/document.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

// The position of the module of that name in model.modules.
std::optional<std::size_t> module_named(const Node& document, std::string_view name);

// Sets train and no_grad of every module that the file freezes or thaws by name; a name that no
// module has is listed as not modelled.
void freeze_named_modules(const ParsedFile& parsed, MergedJob& job);

// Where freeze_NAME keys are all that files say of a model: its modules by those names. One that is
// a preset's beginning is that preset; one more is the model that a flag names. Throws
// Error(kInput) that asks for the others by name.
void build_frozen_modules(Node& document, MergedJob& job);

// The key of `model` that freezes the module: "freeze_vggt".
inline constexpr std::string_view kFreeze = "freeze_";

}  // namespace memfathom
