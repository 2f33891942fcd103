// Model config: the configuration behind a job's `model`, wherever it stands.
#pragma once

#include "core/document.h"

namespace memfathom {

// `holder` has a key `model`: a job, or one of its modules. An inline configuration, a file, a
// folder's config.json or a preset's; null where the model is said in another way.
Node model_config(const Node& holder);

}  // namespace memfathom
