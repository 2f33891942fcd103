#include "estimator/readers/config_keys.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/key_recorder.h"
#include "estimator/models/registry.h"
#include "estimator/readers/model_config.h"
#include "estimator/readers/unread_keys.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/tensor/framework_policy.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

// Builds the network once, without memory, so that a recorder sees which keys its family reads.
// False if it cannot be built here: the estimate then says why.
bool look_up_keys(const Node& config) {
  if (!can_make(config)) return false;
  try {
    DryDevice device;
    BareAllocator allocator;
    Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
    Builder builder(session, {});
    ModelSettings settings;
    settings.sequence_length = 8;
    std::vector<std::string> ignored;
    return make_from_family(builder, config, settings, ignored) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void name_unread_config_keys(ParsedFile& parsed) {
  if (parsed.format != FileFormat::kModelConfig) return;
  const KeyRecorder recorder;
  if (look_up_keys(parsed.content)) collect_unread_keys(recorder, parsed);
}

void name_unread_keys_of_model(const Node& document, MergedJob& job) {
  const Node* config = value_at(document, "model.config");
  const bool is_checked = std::any_of(
      job.files.begin(), job.files.end(),
      [](const ParsedFile& parsed) { return parsed.format == FileFormat::kModelConfig; });
  if (config == nullptr || !config->is_string() || is_checked) return;
  ParsedFile parsed;
  parsed.format = FileFormat::kModelConfig;
  parsed.content = model_config(document);
  parsed.file = parsed.content.file();
  name_unread_config_keys(parsed);
  job.unread.insert(job.unread.end(), parsed.unread.begin(), parsed.unread.end());
}

}  // namespace memfathom
