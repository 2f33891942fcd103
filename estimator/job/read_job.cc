#include "estimator/job/read_job.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/architecture.h"
#include "core/bytes.h"
#include "core/error.h"

namespace memfathom {
namespace {

constexpr std::array<std::string_view, 7> kModelForms{"preset", "config",     "layers", "modules",
                                                      "trace",  "parameters", "family"};

void check_model(const Node& model) {
  static constexpr std::array<std::string_view, 14> kKeys{
      "preset", "config", "layers",      "modules", "trace", "parameters", "family",
      "input",  "loss",   "num_classes", "load",    "train", "adapter",    "part"};
  model.check_keys(kKeys);
  int forms = 0;
  for (const std::string_view form : kModelForms) forms += model.find(form) != nullptr ? 1 : 0;
  if (forms != 1)
    model.refuse(
        "it must have exactly one of preset, config, layers, modules, trace or parameters");
}

void read_offload(const Node& node, ParallelSpec& parallel) {
  node.check_keys({"parameters", "optimizer", "activations"});
  const auto to_cpu = [&](std::string_view key) {
    const Node* value = node.find(key);
    return value != nullptr && value->as_choice({"none", "cpu"}) == 1;
  };
  parallel.offload_parameters = to_cpu("parameters");
  parallel.offload_optimizer = to_cpu("optimizer");
  parallel.offload_activations = to_cpu("activations");
}

void read_zero(const Node& node, ZeroBuffers& zero) {
  constexpr std::int64_t kMax = std::int64_t{1} << 40;
  node.check_keys({"reduce_bucket_size", "allgather_bucket_size", "overlap_comm",
                   "max_live_parameters", "prefetch_bucket_size"});
  const auto read = [&](std::string_view key, std::int64_t& value) {
    if (const Node* found = node.find(key)) value = found->as_int(1, kMax);
  };
  read("reduce_bucket_size", zero.reduce_bucket_size);
  read("allgather_bucket_size", zero.allgather_bucket_size);
  read("max_live_parameters", zero.max_live_parameters);
  read("prefetch_bucket_size", zero.prefetch_bucket_size);
  if (const Node* overlap = node.find("overlap_comm")) zero.overlap_comm = overlap->as_bool();
}

void read_parallel(const Node& node, ParallelSpec& parallel) {
  constexpr std::int64_t kMaxGpus = 1 << 20;
  node.check_keys({"num_gpus", "gpus_per_node", "zero_stage", "fsdp", "tensor", "pipeline",
                   "offload", "fsdp_version", "limit_all_gathers", "reduce_precision", "zero",
                   "gradient_as_bucket_view", "sequence_parallel"});
  if (const Node* n = node.find("num_gpus")) parallel.num_gpus = n->as_int(1, kMaxGpus);
  if (const Node* n = node.find("gpus_per_node")) parallel.gpus_per_node = n->as_int(1, kMaxGpus);
  if (const Node* n = node.find("zero_stage"))
    parallel.zero_stage = static_cast<int>(n->as_int(0, 3));
  if (const Node* n = node.find("fsdp")) {
    parallel.fsdp = n->is_bool() ? (n->as_bool() ? Fsdp::kFull : Fsdp::kNone) : n->as_enum<Fsdp>();
  }
  if (const Node* n = node.find("tensor")) parallel.tensor = n->as_int(1, kMaxGpus);
  if (const Node* n = node.find("pipeline")) parallel.pipeline = n->as_int(1, kMaxGpus);
  if (const Node* n = node.find("offload")) read_offload(*n, parallel);
  if (const Node* n = node.find("fsdp_version"))
    parallel.fsdp_version = static_cast<int>(n->as_int(1, 2));
  if (const Node* n = node.find("limit_all_gathers")) parallel.limit_all_gathers = n->as_bool();
  if (const Node* n = node.find("reduce_precision")) parallel.reduce_precision = n->as_dtype();
  if (const Node* n = node.find("zero")) read_zero(*n, parallel.zero);
  if (const Node* n = node.find("gradient_as_bucket_view"))
    parallel.gradient_as_bucket_view = n->as_bool();
  if (const Node* n = node.find("sequence_parallel")) parallel.sequence_parallel = n->as_bool();
  if (parallel.sequence_parallel && parallel.tensor == 1) {
    node.at("sequence_parallel")
        .refuse("it divides what tensor parallelism leaves whole; set parallel.tensor above 1");
  }
  if (parallel.zero_stage > 0 && parallel.fsdp != Fsdp::kNone) {
    const std::string where = node.at("fsdp").where();
    node.at("zero_stage")
        .refuse("ZeRO and FSDP shard the same things; use one of them" +
                (where.empty() ? "" : " (FSDP is asked for in " + where + ")"));
  }
}

void read_stack(const Node& node, StackSpec& stack) {
  node.check_keys(
      {"framework", "version", "cuda", "cudnn", "transformers", "peft", "bitsandbytes", "library"});
  const auto text = [&](std::string_view key, std::string& value) {
    const Node* found = node.find(key);
    if (found == nullptr || found->is_null()) return;
    value = found->is_string() ? found->as_string() : found->shown();
  };
  if (const Node* framework = node.find("framework");
      framework != nullptr && !framework->is_null()) {
    framework->as_choice({"pytorch", "memfathom"});  // whose calibrations there are
    stack.framework = framework->as_string();
  }
  text("version", stack.version);
  text("cuda", stack.cuda);
  text("cudnn", stack.cudnn);
  text("transformers", stack.transformers);
  text("peft", stack.peft);
  text("bitsandbytes", stack.bitsandbytes);
  if (const Node* library = node.find("library")) stack.library = library->as_enum<ModelLibrary>();
}

// "sm_89", of a GPU that is known by its size only.
int read_architecture(const Node& node, const TargetSpec& target) {
  if (!target.gpu.empty() || !target.device.empty())
    node.refuse(
        "target.gpu and target.device name a GPU whose architecture is known; leave it out");
  const int capability = compute_capability(node.as_string());
  if (capability < kMaxwell)
    node.refuse("it must be an architecture such as sm_75 (T4), sm_80 (A100), sm_89 (RTX 4090)");
  return capability;
}

Bytes margin_size(const Node& node) {
  try {
    return parse_bytes(node.as_string());
  } catch (const Error&) {
    node.refuse("it must be a size such as 2GiB, or a fraction of the capacity such as 0.1");
  }
}

void read_target(const Node& node, TargetSpec& target) {
  node.check_keys({"gpu", "memory", "architecture", "device", "used_by_others", "host_memory",
                   "margin", "calibration", "stack"});
  if (const Node* n = node.find("gpu")) {
    target.gpu = n->as_string();
    if (target.gpu.empty()) n->refuse("name a GPU of memfathom gpus, or leave it out");
  }
  if (const Node* n = node.find("memory")) target.memory = n->as_bytes();
  if (const Node* n = node.find("device")) target.device = n->as_string();
  if (const Node* n = node.find("architecture"))
    target.compute_capability = read_architecture(*n, target);
  if (const Node* n = node.find("used_by_others")) target.used_by_others = n->as_bytes();
  if (const Node* n = node.find("host_memory")) target.host_memory = n->as_bytes();
  if (const Node* n = node.find("margin")) {
    if (n->is_number()) {
      target.margin_fraction = n->as_number();
      if (!(target.margin_fraction >= 0 && target.margin_fraction <= 1))
        n->refuse("it must be a fraction of the capacity from 0 to 1, or a size such as 2GiB");
    } else {
      target.margin_bytes = margin_size(*n);
    }
  }
  if (const Node* n = node.find("calibration"); n != nullptr && !n->is_null())
    target.calibration = n->as_string();
  if (const Node* n = node.find("stack")) read_stack(*n, target.stack);
}

// Everything but the model, whose keys are only checked.
Job read_keys(const Node& document) {
  document.check_keys({"id", "model", "training", "parallel", "allocator", "target"});
  Job job;
  if (const Node* id = document.find("id"))
    job.id = id->is_string() ? id->as_string() : id->shown();
  check_model(document.at("model"));
  if (const Node* node = document.find("training")) read_training(*node, job.training);
  if (const Node* node = document.find("parallel")) read_parallel(*node, job.parallel);
  if (const Node* node = document.find("allocator")) {
    node->check_keys({"backend", "options"});
    if (const Node* backend = node->find("backend")) {
      job.allocator.backend = backend->as_enum<Backend>();
    }
    if (const Node* options = node->find("options")) job.allocator.options = options->as_string();
  }
  if (const Node* node = document.find("target")) read_target(*node, job.target);
  return job;
}

// Of two nodes of the same value. A path is relative to the file that names it.
bool name_same_files(const Node& a, const Node& b) {
  if (a.is_string()) return a.file() == b.file();
  if (a.is_list()) {
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), name_same_files);
  }
  return !a.is_map() || std::all_of(a.entries().begin(), a.entries().end(), [&](const Node& entry) {
    return name_same_files(entry, b.at(entry.key()));
  });
}

// The sizes that the job asks of a recorded step.
TraceSizes sizes_of(const Node& document) {
  TraceSizes sizes;
  const Node* training = document.find("training");
  if (training == nullptr || !training->is_map()) return sizes;
  for (const char* key : {"batch_size", "sequence_length"}) {
    if (const Node* size = training->find(key); size != nullptr && !size->is_null())
      sizes[key] = size->as_int(1);
  }
  return sizes;
}

// Whether the model is no recorded step, or one of these sizes; where the job names none, the step
// must be the one that was recorded.
bool has_sizes(const Trace* trace, const TraceSizes& sizes) {
  if (trace == nullptr) return true;
  if (sizes.empty()) return trace->interpolation.empty();
  return std::all_of(sizes.begin(), sizes.end(), [&](const auto& size) {
    const auto known = trace->sizes.find(size.first);
    return known != trace->sizes.end() && known->second == size.second;
  });
}

void take_recorded_batch(Job& job) {
  const Trace* trace = job.model.trace();
  if (trace == nullptr) return;
  if (const auto known = trace->sizes.find("batch_size"); known != trace->sizes.end())
    job.training.batch_size = known->second;
  if (const auto known = trace->sizes.find("sequence_length"); known != trace->sizes.end())
    job.training.settings.sequence_length = known->second;
}

}  // namespace

Job read_job(const Node& document, const ModelFiles& files) {
  Job job = read_keys(document);
  job.model = resolve_model(document.at("model"), files, sizes_of(document));
  take_recorded_batch(job);
  return job;
}

Job read_variant(const Node& document, const Job& original, const ModelFiles& files) {
  Job job = read_keys(document);
  const Node& model = document.at("model");
  const Node& known = original.model.source();
  const bool is_same = model.same_value(known) && name_same_files(model, known);
  const TraceSizes sizes = sizes_of(document);
  const bool keeps = is_same && has_sizes(original.model.trace(), sizes);
  job.model = keeps ? original.model : resolve_model(model, files, sizes);
  take_recorded_batch(job);
  return job;
}

}  // namespace memfathom
