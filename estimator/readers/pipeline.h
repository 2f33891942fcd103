// Pipeline: a diffusers folder as the modules of a job: text encoders, autoencoder, denoiser.
#pragma once

#include <filesystem>

#include "core/document.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

// What is denoised with is trained, what encodes is frozen and runs before it.
// Whether this is a folder with a model_index.json.
bool names_pipeline(const std::filesystem::path& folder);

ParsedFile read_pipeline(const std::filesystem::path& folder);

// To be called when the job is complete, flags included: training asks a pipeline's autoencoder for
// latents, everything else for images, after the denoiser.
void select_autoencoder_part(const std::vector<ParsedFile>& files, Node& document);

}  // namespace memfathom
