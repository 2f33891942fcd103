// The JSON of the lists of models and GPUs (docs/contract.md §1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "estimator/models/model_list.h"
#include "estimator/session/gpus_for_job.h"

namespace memfathom {

nlohmann::ordered_json models_json(const std::vector<CataloguedModel>& models);
nlohmann::ordered_json gpus_json(const std::vector<GpuFit>& gpus);

}  // namespace memfathom
