#include "serve/admission_review.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/gpus.h"
#include "core/json_value.h"
#include "core/parse_number.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr const char* kVersion = "admission.k8s.io/v1";
constexpr const char* kGpuResource = "nvidia.com/gpu";
constexpr const char* kProductLabel = "nvidia.com/gpu.product";
constexpr const char* kJobAnnotation = "memfathom.io/job";
constexpr const char* kGpuAnnotation = "memfathom.io/gpu";
constexpr std::int64_t kMaxGpus = 1 << 20;
constexpr std::size_t kMaxReplicaTypes = 32;

// The value at a path of keys; null if any is missing or of another type.
const json& at_path(const json& value, std::initializer_list<const char*> keys) {
  static const json kNull;
  const json* found = &value;
  for (const char* key : keys) {
    const auto entry = found->is_object() ? found->find(key) : found->end();
    if (!found->is_object() || entry == found->end()) return kNull;
    found = &*entry;
  }
  return *found;
}

std::string text_at(const json& value, std::initializer_list<const char*> keys) {
  const json& found = at_path(value, keys);
  return found.is_string() ? found.get<std::string>() : "";
}

// A quantity of whole devices: 8, "8".
std::int64_t count_at(const json& value, std::initializer_list<const char*> keys,
                      std::int64_t absent) {
  const json& found = at_path(value, keys);
  std::optional<std::int64_t> count;
  if (found.is_number_integer()) count = found.get<std::int64_t>();
  if (found.is_string()) count = parse_number<std::int64_t>(found.get<std::string>());
  return count && *count >= 0 && *count <= kMaxGpus ? *count : absent;
}

std::vector<std::string> strings_at(const json& value, const char* key) {
  std::vector<std::string> strings;
  for (const json& item : at_path(value, {key})) {
    if (item.is_string()) strings.push_back(item.get<std::string>());
  }
  return strings;
}

// Literal values only: what a Secret or a field holds is not known here.
std::map<std::string, std::string> environment_of(const json& container) {
  std::map<std::string, std::string> values;
  for (const json& entry : at_path(container, {"env"})) {
    const std::string name = text_at(entry, {"name"});
    if (!name.empty() && at_path(entry, {"value"}).is_string())
      values.insert_or_assign(name, text_at(entry, {"value"}));
  }
  return values;
}

// Kubernetes replaces $(NAME) before it starts a container, and $$ is a dollar.
std::string expanded(const std::string& word, const std::map<std::string, std::string>& values) {
  std::string text;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const bool is_escape = word[at] == '$' && at + 1 < word.size() && word[at + 1] == '$';
    const std::size_t end = word[at] == '$' && at + 1 < word.size() && word[at + 1] == '('
                                ? word.find(')', at)
                                : std::string::npos;
    if (is_escape) {
      text += word[at++];
    } else if (end == std::string::npos) {
      text += word[at];
    } else {
      const auto value = values.find(word.substr(at + 2, end - at - 2));
      text += value != values.end() ? value->second : word.substr(at, end - at + 1);
      at = end;
    }
  }
  return text;
}

bool is_shell(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name == "sh" || name == "bash" || name == "dash" || name == "zsh";
}

// The text of `bash -lc TEXT`; nothing if it is another command.
std::optional<std::string> shell_text(const std::vector<std::string>& words) {
  if (words.size() < 3 || !is_shell(words.front())) return std::nullopt;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i].empty() || words[i].front() != '-') return std::nullopt;
    if (words[i].starts_with("--")) continue;
    if (words[i].ends_with('c')) return words[i + 1];
  }
  return std::nullopt;
}

bool is_variable(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// The environment as assignments in front of a script.
std::string assignments(const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    if (!is_variable(name) || value.find('\n') != std::string::npos) continue;
    std::string quoted = value;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    text += fmt::format("export {}='{}'\n", name, quoted);
  }
  return text;
}

json command_of(const json& container) {
  const std::map<std::string, std::string> values = environment_of(container);
  std::vector<std::string> words;
  for (const char* key : {"command", "args"}) {
    for (const std::string& word : strings_at(container, key))
      words.push_back(expanded(word, values));
  }
  if (words.empty()) return nullptr;  // the image's own entry point
  if (const std::optional<std::string> script = shell_text(words))
    return {{"command", assignments(values) + *script}};
  return {{"command", words}};
}

// The products that a node may have. Every term that names one counts; a term without one admits
// any.
std::vector<std::string> products_of(const json& spec) {
  const std::string chosen = text_at(spec, {"nodeSelector", kProductLabel});
  if (!chosen.empty()) return {chosen};
  std::vector<std::string> products;
  for (const json& term :
       at_path(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                      "nodeSelectorTerms"})) {
    std::vector<std::string> of_term;
    for (const json& expression : at_path(term, {"matchExpressions"})) {
      if (text_at(expression, {"key"}) == kProductLabel &&
          text_at(expression, {"operator"}) == "In")
        of_term = strings_at(expression, "values");
    }
    if (of_term.empty()) return {};
    products.insert(products.end(), of_term.begin(), of_term.end());
  }
  return products;
}

// Of several GPUs the largest: nothing is refused that fits on one of them.
void set_gpu(const json& metadata, const json& spec, ReviewedPod& pod) {
  std::vector<std::string> products = products_of(spec);
  const std::string named = text_at(metadata, {"annotations", kGpuAnnotation});
  if (!named.empty()) products = {named};
  const Gpu* largest = nullptr;
  for (const std::string& product : products) {
    const std::string name = gpu_of_product(product);
    if (name.empty()) {
      pod.unknown_gpu = product;
      return;
    }
    const Gpu* const gpu = find_gpu(name);
    if (largest == nullptr || gpu->memory() > largest->memory()) largest = gpu;
  }
  if (largest != nullptr) pod.gpu = largest->name;
}

// A Pod's template with its replicas, if it asks for GPUs.
void add_pod(const json& holder, const std::string& where, std::int64_t replicas,
             AdmissionReview& review) {
  const json& spec = at_path(holder, {"spec"});
  ReviewedPod pod{where, nullptr, {}, {}, 0};
  std::int64_t containers = 0;
  for (const json& container : at_path(spec, {"containers"})) {
    const std::int64_t gpus = count_at(container, {"resources", "limits", kGpuResource}, 0);
    if (gpus == 0) continue;
    ++containers;
    pod.gpus += gpus;
    pod.job = command_of(container);
  }
  if (containers == 0) return;
  if (containers > 1) pod.job = nullptr;  // which one trains is not known
  const json& metadata = at_path(holder, {"metadata"});
  const std::string described = text_at(metadata, {"annotations", kJobAnnotation});
  if (!described.empty()) pod.job = {{"job", described}};
  set_gpu(metadata, spec, pod);
  pod.gpus = std::min(kMaxGpus, pod.gpus * std::max<std::int64_t>(replicas, 1));
  review.pods.push_back(std::move(pod));
}

// What the object itself is annotated with counts for its templates.
json with_annotations(const json& pod_template, const json& object) {
  json merged = pod_template;
  for (const char* key : {kJobAnnotation, kGpuAnnotation}) {
    const std::string value = text_at(object, {"metadata", "annotations", key});
    if (value.empty() || !text_at(merged, {"metadata", "annotations", key}).empty()) continue;
    if (!at_path(merged, {"metadata"}).is_object()) merged["metadata"] = json::object();
    if (!at_path(merged, {"metadata", "annotations"}).is_object())
      merged["metadata"]["annotations"] = json::object();
    merged["metadata"]["annotations"][key] = value;
  }
  return merged;
}

// All replica types train one model together.
void add_replicas(const json& object, const std::string& key, AdmissionReview& review) {
  const json& types = at_path(object, {"spec", key.c_str()});
  if (!types.is_object() || types.size() > kMaxReplicaTypes) return;
  const std::size_t first = review.pods.size();
  for (const auto& [name, replica] : types.items()) {
    const json& pod_template = at_path(replica, {"template"});
    if (pod_template.is_object())
      add_pod(with_annotations(pod_template, object), fmt::format("spec.{}.{}", key, name),
              count_at(replica, {"replicas"}, 1), review);
  }
  std::int64_t together = 0;
  for (std::size_t i = first; i < review.pods.size(); ++i) together += review.pods[i].gpus;
  for (std::size_t i = first; i < review.pods.size(); ++i)
    review.pods[i].gpus = std::min(kMaxGpus, together);
}

void add_pods(const json& object, AdmissionReview& review) {
  const json& spec = at_path(object, {"spec"});
  if (at_path(spec, {"containers"}).is_array()) {
    add_pod(object, "", 1, review);
    return;
  }
  const auto add_template = [&](const char* where, const json& pod_template) {
    if (!pod_template.is_object()) return;
    add_pod(with_annotations(pod_template, object), where,
            count_at(spec, {"parallelism"}, count_at(spec, {"replicas"}, 1)), review);
  };
  add_template("spec.template", at_path(spec, {"template"}));
  add_template("spec.jobTemplate", at_path(spec, {"jobTemplate", "spec", "template"}));
  if (!spec.is_object()) return;
  for (const auto& [key, value] : spec.items()) {
    if (key.ends_with("ReplicaSpecs")) add_replicas(object, key, review);
  }
}

std::string base64(const std::string& text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string encoded;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8U | (at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      encoded += at + i <= text.size() ? kDigits[bits >> (18 - 6 * i) & 63U] : '=';
  }
  return encoded;
}

std::string annotation_patch(const AdmissionReview& review, const std::string& text) {
  json patch = json::array();
  if (!review.has_annotations)
    patch.push_back({{"op", "add"}, {"path", "/metadata/annotations"}, {"value", json::object()}});
  patch.push_back(
      {{"op", "add"}, {"path", "/metadata/annotations/memfathom.io~1estimate"}, {"value", text}});
  return patch.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string gpu_of_product(std::string product) {
  constexpr std::string_view kShared = "-SHARED";  // time slicing: the memory is that of all
  if (product.ends_with(kShared)) product.resize(product.size() - kShared.size());
  if (product.find("-MIG-") != std::string::npos) return "";
  const Gpu* const gpu = find_gpu(product);
  if (gpu == nullptr) return "";
  if (ambiguous_gpu_sentence(product).empty()) return std::string(gpu->name);
  // A product without a size: the one with the largest memory.
  const std::string family(gpu->name.substr(0, gpu->name.rfind('-') + 1));
  std::string largest(gpu->name);
  for (const Gpu& other : gpus_by_memory()) {
    const std::string_view size = other.name.substr(std::min(family.size(), other.name.size()));
    if (other.name.starts_with(family) && size.ends_with("gb") &&
        size.find('-') == std::string_view::npos)
      largest = other.name;
  }
  return largest;
}

AdmissionReview read_review(std::string_view body) {
  const json record = parse_json_value(body, "the request's body");
  const std::string version = text_at(record, {"apiVersion"});
  if (text_at(record, {"kind"}) != "AdmissionReview" || version != kVersion) {
    throw Error(ErrorKind::kInput, fmt::format("the request's body is not an AdmissionReview of "
                                               "{}; list that version in admissionReviewVersions",
                                               kVersion));
  }
  AdmissionReview review;
  review.uid = text_at(record, {"request", "uid"});
  constexpr std::size_t kMaxUid = 128;
  if (review.uid.empty() || review.uid.size() > kMaxUid)
    throw Error(ErrorKind::kInput, "the AdmissionReview has no request with a uid");
  review.is_creation = text_at(record, {"request", "operation"}) == "CREATE";
  const json& object = at_path(record, {"request", "object"});
  review.has_annotations = at_path(object, {"metadata", "annotations"}).is_object();
  for (const json& owner : at_path(object, {"metadata", "ownerReferences"})) {
    const json& controls = at_path(owner, {"controller"});
    if (controls.is_boolean() && controls.get<bool>()) review.is_controlled = true;
  }
  if (review.is_creation && !review.is_controlled) add_pods(object, review);
  return review;
}

std::string answer_text(const AdmissionReview& review, const ReviewAnswer& answer, bool patches) {
  json response{{"uid", review.uid}, {"allowed", answer.is_allowed}};
  if (!answer.warnings.empty()) response["warnings"] = answer.warnings;
  if (!answer.is_allowed) {
    constexpr int kForbidden = 403;
    response["status"] = {{"code", kForbidden}, {"message", answer.refusal}};
  }
  if (patches && !answer.annotation.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = base64(annotation_patch(review, answer.annotation));
  }
  return json{{"apiVersion", kVersion}, {"kind", "AdmissionReview"}, {"response", response}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

}  // namespace memfathom
