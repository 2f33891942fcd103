#include "estimator/models/model_list.h"

#include <algorithm>

#include "core/document.h"
#include "estimator/models/factory.h"
#include "estimator/models/grid_presets.h"
#include "estimator/models/presets.h"
#include "estimator/models/resolve_model.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

// Parameters only: nothing is run, so the extents only have to be possible ones.
std::int64_t count_parameters(const std::string& preset) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  Builder builder(session, BuildOptions{});
  ModelSettings settings;
  settings.sequence_length = 8;
  settings.num_images = 0;
  Node model = Node::map();
  model.set("preset", Node::string(preset));
  std::vector<std::string> assumptions;
  const std::unique_ptr<Network> network =
      make_network(builder, resolve_model(model), settings, assumptions);
  builder.finish();
  return builder.parameter_count();
}

}  // namespace

std::vector<CataloguedModel> model_catalogue() {
  std::vector<CataloguedModel> models;
  for (const Preset& preset : presets()) {
    if (preset.is_partial) continue;  // among the grid presets
    const std::string name(preset.name);
    models.push_back({name, std::string(preset.description), count_parameters(name)});
  }
  for (const Preset* preset : grid_presets())
    models.push_back(
        {std::string(preset->name), std::string(preset->description), preset->parameters});
  return models;
}

}  // namespace memfathom
