// The modules of a Stable Diffusion, SDXL or Flux pipeline in one of diffusers' own training
// scripts: what the script keeps on the GPU, in which type, and its defaults.
#pragma once

#include <string>

namespace memfathom {

struct CommandReading;

// Whether the command starts one of the scripts that are known (their defaults are, too), and not
// another project's of the same name, which trains adapters.
bool is_known_diffusion_script(const CommandReading& reading);

// Lays the script's defaults under the flags: batch, resolution, class images.
void set_diffusion_defaults(CommandReading& reading);

// Sets model.modules of the job where script and model are known, after the flags were read.
// False: nothing was set.
bool set_diffusion_modules(CommandReading& reading);

}  // namespace memfathom
