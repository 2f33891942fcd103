// config_keys: names the keys of a config.json that the network of its family does not read.
#pragma once

#include "core/document.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

// Adds them to `parsed.unread`; does nothing for other formats and for models that cannot be built.
void name_unread_config_keys(ParsedFile& parsed);

// The same for a config.json that the job reaches by a name: a folder, the hub's cache. Does
// nothing if one of the files is a config.json.
void name_unread_keys_of_model(const Node& document, MergedJob& job);

}  // namespace memfathom
