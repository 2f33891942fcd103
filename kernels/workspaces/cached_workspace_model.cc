#include "kernels/workspaces/cached_workspace_model.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/error.h"
#include "core/pytorch_convolution.h"

namespace memfathom {
namespace {

class Mixer {
 public:
  void add(std::int64_t value) {
    state_ = (state_ ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
    state_ ^= state_ >> 29;
  }
  void add(const Shape& shape) {
    add(shape.rank());
    for (const std::int64_t extent : shape) add(extent);
  }
  std::size_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243F6A8885A308D3U;
};

}  // namespace

std::size_t ConvolutionQueryHash::operator()(const ConvolutionQuery& query) const {
  Mixer mixer;
  for (const Shape* shape : {&query.input, &query.weight, &query.stride, &query.padding,
                             &query.output_padding, &query.dilation}) {
    mixer.add(*shape);
  }
  mixer.add(query.groups);
  mixer.add(static_cast<int>(query.kind) * 64 + static_cast<int>(query.dtype) * 8 +
            query.transposed * 4 + query.channels_last * 2 + query.benchmark);
  return mixer.value();
}

CachedWorkspaceModel::CachedWorkspaceModel(std::unique_ptr<ConvolutionPlanner> planner,
                                           std::unique_ptr<WorkspaceStore> store,
                                           std::unique_ptr<WorkspaceModel> fallback)
    : planner_(std::move(planner)), store_(std::move(store)), fallback_(std::move(fallback)) {}

CachedWorkspaceModel::~CachedWorkspaceModel() = default;

bool CachedWorkspaceModel::look_up(const ConvolutionQuery& query, WorkspaceSize& answer) const {
  if (const auto found = known_.find(query); found != known_.end()) {
    answer = found->second;
    return true;
  }
  if (const std::optional<Bytes> own = pytorch_workspace_without_cudnn(query)) {
    answer = {*own, Source::kExact};
  } else if (const std::optional<std::int64_t> stored = store_->find(to_string(query))) {
    answer = *stored == CachedWorkspace::kRefused ? fallback_->convolution(query)
                                                  : WorkspaceSize{Bytes{*stored}, Source::kExact};
  } else {
    return false;
  }
  known_.emplace(query, answer);
  return true;
}

void CachedWorkspaceModel::plan(std::span<const ConvolutionQuery> unknown) const {
  std::vector<std::optional<Bytes>> planned(unknown.size());
  bool asked = false;
  // A planner that failed once is not started again for every layer of a network.
  if (planner_ != nullptr && failure_.empty()) {
    try {
      planned = planner_->ask(unknown);
      asked = true;
    } catch (const Error& error) {
      failure_ = error.what();
    }
  }
  std::vector<CachedWorkspace> fresh;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const WorkspaceSize answer = planned[i] ? WorkspaceSize{*planned[i], Source::kExact}
                                            : fallback_->convolution(unknown[i]);
    known_.emplace(unknown[i], answer);
    if (asked)
      fresh.push_back(
          {to_string(unknown[i]), planned[i] ? planned[i]->count() : CachedWorkspace::kRefused});
  }
  store_->append(fresh);
}

WorkspaceSize CachedWorkspaceModel::convolution(const ConvolutionQuery& query) const {
  return convolution_batch(std::span(&query, 1)).front();
}

std::vector<WorkspaceSize> CachedWorkspaceModel::convolution_batch(
    std::span<const ConvolutionQuery> queries) const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkspaceSize> answers(queries.size());
  std::vector<std::size_t> open;
  std::vector<ConvolutionQuery> unknown;
  std::unordered_map<ConvolutionQuery, bool, ConvolutionQueryHash> once;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (look_up(queries[i], answers[i])) continue;
    open.push_back(i);
    if (once.emplace(queries[i], true).second) unknown.push_back(queries[i]);
  }
  if (!unknown.empty()) plan(unknown);
  for (const std::size_t i : open) look_up(queries[i], answers[i]);
  return answers;
}

WorkspaceSize CachedWorkspaceModel::fft(const FftQuery& query) const {
  return fallback_->fft(query);
}

WorkspaceSize CachedWorkspaceModel::attention(const AttentionQuery& query) const {
  return fallback_->attention(query);
}

std::string CachedWorkspaceModel::planner_failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace memfathom
