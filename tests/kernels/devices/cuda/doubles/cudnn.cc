// The double of cuDNN: descriptors are recorded and passed on to the real library, which plans
// without a device; only handles and execution are simulated. Without the real library a small
// built-in planner answers.
#include <cudnn_graph.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/workspaces/architectures.h"
#include "tests/kernels/devices/cuda/doubles/control.h"
#include "tests/kernels/devices/cuda/doubles/cudnn_control.h"
#include "tests/kernels/devices/cuda/doubles/cudnn_recorded.h"

namespace doubles = memfathom::doubles;
using doubles::Recorded;
using doubles::RecordedPtr;

namespace {

struct Real {
  decltype(&cudnnBackendCreateDescriptor) create = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// Null when the library is absent.
const Real* open_real() {
  static const std::unique_ptr<Real> real = []() -> std::unique_ptr<Real> {
    void* library = dlopen(MEMFATHOM_REAL_CUDNN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto found = std::make_unique<Real>();
    find(library, "cudnnBackendCreateDescriptor", found->create);
    find(library, "cudnnBackendDestroyDescriptor", found->destroy);
    find(library, "cudnnBackendSetAttribute", found->set);
    find(library, "cudnnBackendGetAttribute", found->get);
    find(library, "cudnnBackendFinalize", found->finalize);
    return found;
  }();
  return real.get();
}

bool& wants_real() {
  static bool wanted = false;
  return wanted;
}

const Real* real() { return wants_real() ? open_real() : nullptr; }

std::map<const void*, RecordedPtr>& all() {
  static std::map<const void*, RecordedPtr> descriptors;
  return descriptors;
}

std::map<const void*, cudaStream_t>& streams() {
  static std::map<const void*, cudaStream_t> of_handles;
  return of_handles;
}

cudnnStatus_t refuse(const char* function, const std::string& why,
                     cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM) {
  doubles::refuse(function, why, status);
  return status;
}

RecordedPtr find_recorded(const void* handle) {
  const auto found = all().find(handle);
  return found == all().end() ? nullptr : found->second;
}

void record(Recorded& target, int name, cudnnBackendAttributeType_t type, std::int64_t count,
            const void* values) {
  for (std::int64_t i = 0; i < count; ++i) {
    switch (type) {
      case CUDNN_TYPE_INT64:
        target.numbers[name].push_back(static_cast<const std::int64_t*>(values)[i]);
        break;
      case CUDNN_TYPE_DATA_TYPE:
        target.numbers[name].push_back(static_cast<const cudnnDataType_t*>(values)[i]);
        break;
      case CUDNN_TYPE_HEUR_MODE:
        target.numbers[name].push_back(static_cast<const cudnnBackendHeurMode_t*>(values)[i]);
        break;
      case CUDNN_TYPE_BOOLEAN:
        target.numbers[name].push_back(static_cast<const bool*>(values)[i] ? 1 : 0);
        break;
      case CUDNN_TYPE_POINTWISE_MODE:
        target.numbers[name].push_back(static_cast<const cudnnPointwiseMode_t*>(values)[i]);
        break;
      case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
        target.numbers[name].push_back(static_cast<const cudnnReduceTensorOp_t*>(values)[i]);
        break;
      case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        target.parts[name].push_back(
            find_recorded(static_cast<const cudnnBackendDescriptor_t*>(values)[i]));
        break;
      case CUDNN_TYPE_VOID_PTR:
        target.pointers[name].push_back(static_cast<void* const*>(values)[i]);
        break;
      default: break;
    }
  }
}

std::string machine_json() {
  const doubles::Machine machine = doubles::machine();
  return memfathom::to_cudnn_json(
      memfathom::describe_gpu(std::to_string(machine.major) + std::to_string(machine.minor)));
}

cudnnStatus_t pass_on(const Real& library, Recorded& target, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return library.set(target.original, name, type, count, values);
  std::vector<cudnnBackendDescriptor_t> originals;
  for (std::int64_t i = 0; i < count; ++i) {
    originals.push_back(
        find_recorded(static_cast<const cudnnBackendDescriptor_t*>(values)[i])->original);
  }
  return library.set(target.original, name, type, count, originals.data());
}

// Without a descriptor cuDNN plans for the current device, which the real library does not have
// here: it gets the description of the doubled one.
cudnnStatus_t describe_machine(const Real& library, Recorded& target) {
  const bool is_plan = target.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  if (!is_plan && target.type != CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  const cudnnBackendAttributeName_t name =
      is_plan ? CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP : CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
  if (target.parts.contains(name)) return CUDNN_STATUS_SUCCESS;
  const std::string json = machine_json();
  cudnnBackendDescriptor_t described = nullptr;
  cudnnStatus_t status = library.create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &described);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = library.set(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                         static_cast<std::int64_t>(json.size()), json.data());
  }
  if (status == CUDNN_STATUS_SUCCESS) status = library.finalize(described);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = library.set(target.original, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &described);
    target.description = described;  // lives as long as what was made with it
  }
  return status;
}

cudnnStatus_t ask_real(const Real& library, const RecordedPtr& source,
                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       std::int64_t capacity, std::int64_t* held, void* values) {
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR || values == nullptr) {
    return library.get(source->original, name, type, capacity, held, values);
  }
  std::vector<cudnnBackendDescriptor_t> originals;
  for (std::int64_t i = 0; i < capacity; ++i) {
    const RecordedPtr into = find_recorded(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
    into->origin = source;
    into->finalized = true;
    originals.push_back(into->original);
  }
  return library.get(source->original, name, type, capacity, held, originals.data());
}

struct PretendedEngine {
  std::int64_t workspace;
  std::vector<cudnnBackendNumericalNote_t> notes;
};

// Mode A knows two engines that can be used, behind one that rounds its inputs and one that cannot
// say what it wants; the fallback list has one that needs nothing.
std::vector<PretendedEngine> pretended_engines(const RecordedPtr& heuristics) {
  if (heuristics->number(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK) return {{0, {}}};
  return {{7 << 20, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
          {-1, {}},
          {1 << 20, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}},
          {1 << 22, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}}};
}

cudnnStatus_t ask_pretended(const RecordedPtr& source, cudnnBackendAttributeName_t name,
                            std::int64_t capacity, std::int64_t* held, void* values) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const std::vector<PretendedEngine> engines = pretended_engines(source);
      *held = static_cast<std::int64_t>(engines.size());
      if (values == nullptr) return CUDNN_STATUS_SUCCESS;
      *held = std::min(*held, capacity);
      for (std::int64_t i = 0; i < *held; ++i) {
        const RecordedPtr into = find_recorded(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
        into->origin = source;
        into->finalized = true;
        into->pretended = engines[static_cast<std::size_t>(i)].workspace;
        into->notes = engines[static_cast<std::size_t>(i)].notes;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
      if (source->pretended < 0) return CUDNN_STATUS_NOT_SUPPORTED;
      *held = 1;
      *static_cast<std::int64_t*>(values) = source->pretended;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *held = 1;
      *static_cast<std::int64_t*>(values) =
          source->parts[CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG].front()->pretended;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      *held = 1;
      const RecordedPtr engine = find_recorded(*static_cast<cudnnBackendDescriptor_t*>(values));
      engine->finalized = true;
      engine->notes = source->notes;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *held = static_cast<std::int64_t>(source->notes.size());
      std::copy_n(source->notes.begin(), std::min(*held, capacity),
                  static_cast<cudnnBackendNumericalNote_t*>(values));
      return CUDNN_STATUS_SUCCESS;
    default:
      return refuse("cudnnBackendGetAttribute", "our own planner does not know this attribute");
  }
}

bool reads_bf16(const Recorded& operation) {
  for (const auto& [name, parts] : operation.parts) {
    const auto type = parts.front()->numbers.find(CUDNN_ATTR_TENSOR_DATA_TYPE);
    if (type != parts.front()->numbers.end() && type->second.front() == CUDNN_DATA_BFLOAT16)
      return true;
  }
  return false;
}

// Fused attention and convolutions of bf16 exist from Ampere on.
bool is_known(const RecordedPtr& heuristics) {
  if (doubles::machine().major >= 8) return true;
  const Recorded& graph = heuristics->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const std::vector<RecordedPtr>& operations = graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  return operations.size() == 1 && !reads_bf16(*operations.front());
}

std::int64_t workspace_of(const RecordedPtr& plan) {
  std::int64_t held = 0;
  std::int64_t bytes = 0;
  if (plan->original != nullptr) {
    open_real()->get(plan->original, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                     &held, &bytes);
  } else {
    ask_pretended(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1, &held, &bytes);
  }
  return bytes;
}

}  // namespace

memfathom::doubles::Recorded::~Recorded() {
  if (original != nullptr && open_real() != nullptr) open_real()->destroy(original);
  if (description != nullptr && open_real() != nullptr) open_real()->destroy(description);
}

bool memfathom::doubles::plan_with_real_cudnn(bool wanted) {
  wants_real() = wanted;
  return real() != nullptr;
}

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (const int injected = doubles::enter("cudnnCreate"))
    return static_cast<cudnnStatus_t>(injected);
  *handle = static_cast<cudnnHandle_t>(doubles::new_handle());
  doubles::created("cudnn", *handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  doubles::enter("cudnnDestroy");
  return doubles::destroyed("cudnn", handle) ? CUDNN_STATUS_SUCCESS
                                             : refuse("cudnnDestroy", "it does not exist");
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (const int injected = doubles::enter("cudnnSetStream"))
    return static_cast<cudnnStatus_t>(injected);
  if (!doubles::alive("cudnn", handle) || !doubles::alive("stream", stream)) {
    return refuse("cudnnSetStream", "the handle or the stream does not exist");
  }
  streams()[handle] = stream;
  return CUDNN_STATUS_SUCCESS;
}

std::size_t cudnnGetVersion() { return doubles::machine().cudnn; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
                                                 : "a status of the double";
}
void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (size > 0) message[0] = '\0';
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (const int injected = doubles::enter("cudnnBackendCreateDescriptor"))
    return static_cast<cudnnStatus_t>(injected);
  auto recorded = std::make_shared<Recorded>();
  recorded->type = type;
  if (real() != nullptr && type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    const cudnnStatus_t status = real()->create(type, &recorded->original);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  *descriptor = doubles::new_handle();
  doubles::created("cudnn descriptor", *descriptor);
  all()[*descriptor] = recorded;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  doubles::enter("cudnnBackendDestroyDescriptor");
  all().erase(descriptor);
  return doubles::destroyed("cudnn descriptor", descriptor)
             ? CUDNN_STATUS_SUCCESS
             : refuse("cudnnBackendDestroyDescriptor", "it does not exist");
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  if (const int injected = doubles::enter("cudnnBackendSetAttribute"))
    return static_cast<cudnnStatus_t>(injected);
  const RecordedPtr target = find_recorded(descriptor);
  if (!target || target->finalized)
    return refuse("cudnnBackendSetAttribute", "the descriptor is gone or finalized");
  record(*target, name, type, count, values);
  return target->original == nullptr ? CUDNN_STATUS_SUCCESS
                                     : pass_on(*real(), *target, name, type, count, values);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const RecordedPtr target = find_recorded(descriptor);
  if (!target) return refuse("cudnnBackendFinalize", "the descriptor is gone");
  // Faults are aimed at one kind of descriptor: finalizing is what fails when an engine cannot be
  // built.
  const char* function =
      target->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ? "cudnnBackendFinalize(plan)"
      : target->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR   ? "cudnnBackendFinalize(heuristics)"
                                                              : "cudnnBackendFinalize";
  if (const int injected = doubles::enter(function)) return static_cast<cudnnStatus_t>(injected);
  if (target->original == nullptr && target->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
      !is_known(target)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (target->original != nullptr) status = describe_machine(*real(), *target);
  if (target->original != nullptr && status == CUDNN_STATUS_SUCCESS)
    status = real()->finalize(target->original);
  target->finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t capacity,
                                       std::int64_t* held, void* values) {
  if (const int injected = doubles::enter("cudnnBackendGetAttribute"))
    return static_cast<cudnnStatus_t>(injected);
  const RecordedPtr source = find_recorded(descriptor);
  if (!source || !source->finalized)
    return refuse("cudnnBackendGetAttribute", "the descriptor is gone or not finalized");
  if (source->original != nullptr)
    return ask_real(*real(), source, name, type, capacity, held, values);
  return ask_pretended(source, name, capacity, held, values);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const char* function = "cudnnBackendExecute";
  if (const int injected = doubles::enter(function)) return static_cast<cudnnStatus_t>(injected);
  if (doubles::sticky_error() != 0) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!doubles::alive("cudnn", handle)) return refuse(function, "the handle does not exist");
  // Not an error of cuDNN, but one of ours: the default stream is not ordered with the device's
  // own.
  if (!doubles::alive("stream", streams()[handle]))
    doubles::refuse(function, "the handle runs on the default stream", 0);
  const RecordedPtr planned = find_recorded(plan);
  const RecordedPtr packed = find_recorded(pack);
  if (!planned || !packed || !planned->finalized || !packed->finalized)
    return refuse(function, "a descriptor is not finalized");
  if (planned->parts.contains(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP))
    return refuse(function,
                  "the plan is for a described device: documented to be serialised first");
  const std::int64_t wanted = workspace_of(planned);
  void* workspace = packed->pointers[CUDNN_ATTR_VARIANT_PACK_WORKSPACE].front();
  doubles::EngineWorkspace own{nullptr, static_cast<std::size_t>(wanted)};
  if (wanted > 0) own.host = doubles::host_view(workspace, own.bytes);
  if (wanted > 0 && (own.host == nullptr || reinterpret_cast<std::uint64_t>(workspace) % 16 != 0)) {
    return refuse(function, "the workspace is too small, misaligned or missing");
  }
  const RecordedPtr graph = planned->parts[CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG]
                                .front()
                                ->origin->parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH]
                                .front();
  const std::string refusal =
      doubles::run_graph(graph->parts[CUDNN_ATTR_OPERATIONGRAPH_OPS], *packed, own);
  return refusal.empty() ? CUDNN_STATUS_SUCCESS : refuse(function, refusal);
}

}  // extern "C"
