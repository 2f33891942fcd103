#include "tests/support/oracle_job.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include "estimator/job/read_job.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/training_loop.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/trace/tracing_allocator.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

class EventList final : public TraceSink {
 public:
  explicit EventList(std::vector<TraceEvent>& events) : events_(events) {}
  void write(const TraceEvent& event) override { events_.push_back(event); }

 private:
  std::vector<TraceEvent>& events_;
};

// A row's model is {config}, or {modules: [{model: {config}, train}]}.
const Node& module_of(const Node& model) {
  const Node* modules = model.find("modules");
  return modules != nullptr ? modules->items().front() : model;
}

const Node* config_of(const Node& model) {
  const Node& module = module_of(model);
  const Node* inner = module.find("model");
  return (inner != nullptr ? *inner : module).find("config");
}

BuildOptions build_options(const TrainingSpec& training, const Node& model) {
  BuildOptions options;
  options.dtype = training.precision.parameters;
  if (training.lora) {
    options.train = TrainableSubset::kLora;
    options.lora = LoraOptions{.rank = training.lora->rank, .targets = training.lora->targets};
    options.lora->dropout = training.lora->dropout.value_or(0);
    options.lora->precision = training.lora->precision.value_or(DType::kFp32);
  }
  if (const Node* train = module_of(model).find("train"); train != nullptr && train->is_map()) {
    options.train = TrainableSubset::kLast;
    options.last_blocks = train->at("last").as_int(0);
  }
  return options;
}

LoopOptions loop_options(const TrainingSpec& training) {
  LoopOptions options;
  options.optimizer = training.optimizer_options();
  options.batch_size = training.batch_size;
  options.autocast = training.precision.autocast;
  options.grad_scaler = training.grad_scaler;
  options.hold_output = training.hold_output;
  return options;
}

std::int64_t live(const PhaseRecord& phase, std::initializer_list<Component> components) {
  std::int64_t bytes = 0;
  for (const ComponentBytes& module : phase.live_at_peak) {
    for (const Component component : components)
      bytes += module[static_cast<std::size_t>(component)];
  }
  return bytes;
}

std::int64_t rounded_bytes(const std::vector<NamedTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const NamedTensor& named : tensors) bytes += named.tensor.impl()->storage->accounted_bytes();
  return bytes;
}

void read_phases(Ledger& ledger, OracleResult& result) {
  for (const PhaseRecord& phase : ledger.phases()) {
    if (phase.name == "step") {
      result.gradients = std::max(result.gradients, live(phase, {Component::kGradients}));
      result.optimizer_state = live(phase, {Component::kOptimizerState});
    }
    if (phase.name == "prefill") result.peak_prefill = phase.allocated_peak;
    if (phase.iteration != 2) continue;
    if (phase.name == "forward") result.peak_forward = phase.allocated_peak;
    if (phase.name == "backward") result.peak_backward = phase.allocated_peak;
    if (phase.name == "step") result.peak_step = phase.allocated_peak;
  }
}

}  // namespace

std::vector<OracleRow> read_oracle_rows(const std::function<bool(const std::string&)>& wanted) {
  std::ifstream file(shared_data().string() + "/oracle/jobs/models.jsonl");
  std::vector<OracleRow> rows;
  std::string line;
  while (std::getline(file, line)) {
    const Node row = parse_json(line, "models.jsonl");
    const Node& job = row.at("job");
    const Node* config = config_of(job.at("model"));
    if (config == nullptr || config->find("model_type") == nullptr) continue;
    if (!wanted(config->at("model_type").as_string())) continue;
    rows.push_back({row.at("id").as_string(), *config, job, row.at("expected")});
  }
  return rows;
}

OracleResult run_oracle_row(const OracleRow& row, const NetworkMaker& make, bool with_events) {
  OracleResult result;
  TrainingSpec training;
  read_training(row.job.at("training"), training);
  if (training.use_cache) training.settings.use_cache = *training.use_cache;
  training.settings.precision = training.precision.parameters;
  if (training.kv_cache) training.settings.kv_cache = *training.kv_cache;
  FrameworkPolicy policy = FrameworkPolicy::for_stack("2.15", 80);
  policy.count_workspaces = false;
  policy.in_place_shortcuts = false;
  DryDevice device;
  BareAllocator bare;
  EventList list(result.events);
  TracingAllocator tracing(bare, list);
  Allocator& allocator = with_events ? static_cast<Allocator&>(tracing) : bare;
  Session session(device, allocator, device.workspaces(), policy);
  Builder builder(session, build_options(training, row.job.at("model")));
  const std::unique_ptr<Network> network = make(builder, row.config, training.settings);
  builder.finish();
  result.parameter_count = builder.parameter_count();
  result.parameters = rounded_bytes(builder.parameters());
  result.buffers = rounded_bytes(builder.buffers());
  if (training.mode == Mode::kTrain) {
    TrainingLoop loop(session, *network, builder.trainable(), loop_options(training));
    for (int i = 0; i < 2; ++i) loop.iterate();
    read_phases(session.ledger(), result);
    return result;
  }
  network->load_batch(training.batch_size, false);
  const NoGrad no_grad(session);
  session.training = false;
  const AutocastScope autocast(session, training.precision.autocast);
  if (training.mode == Mode::kInference) {
    session.ledger().begin_phase("forward", 2);
    const Tensor output = network->forward();
    read_phases(session.ledger(), result);
    return result;
  }
  session.ledger().begin_phase("prefill", 2);
  Tensor logits = network->prefill();
  logits.reset();
  session.ledger().begin_phase("decode", 2);
  for (std::int64_t i = 1; i < training.settings.new_tokens; ++i) logits = network->decode();
  for (const ComponentBytes& module : session.ledger().live()) {
    result.kv_cache += module[static_cast<std::size_t>(Component::kKvCache)];
  }
  read_phases(session.ledger(), result);
  return result;
}

}  // namespace memfathom
