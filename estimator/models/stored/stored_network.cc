#include "estimator/models/stored/stored_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/pass.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/norm.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// "model.layers.12." of "model.layers.12.mlp.up_proj.weight"; empty outside of numbered blocks.
std::string_view block_of(std::string_view name) {
  std::size_t begin = 0;
  while (begin < name.size()) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const bool number =
        !part.empty() && part.size() < 7 &&
        std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number && end < name.size()) return name.substr(0, end + 1);
    begin = end + 1;
  }
  return {};
}

// Blocks in the order of their numbers, not of their spelling.
bool comes_before(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

bool contains_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

bool is_matrix(const StoredTensor& tensor) {
  return tensor.shape.rank() == 2 && is_floating(tensor.dtype) && tensor.name.ends_with(".weight");
}

// Parameters that take part in no known way: they only get their gradients.
Tensor touched(const Tensor& x, const std::vector<Tensor>& parameters) {
  if (parameters.empty()) return x;
  std::vector<Tensor> inputs{x};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  Recording tape(x.session(), "StoredParameters", inputs);
  Tensor out = x.detach();
  std::vector<std::pair<Shape, DType>> kinds;
  for (const Tensor& parameter : parameters)
    kinds.emplace_back(parameter.shape(), parameter.dtype());
  tape.finish(out, [kinds = std::move(kinds)](Backward& b) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (b.needs(i + 1)) b.give(i + 1, b.session().empty(kinds[i].first, kinds[i].second));
    }
    if (b.needs(0)) b.give(0, b.gradient());
  });
  return out;
}

// A numbered block: matrices that read the hidden states, matrices that write to them.
class StoredBlock {
 public:
  explicit StoredBlock(std::int64_t hidden) : hidden_(hidden) {}

  void add(Linear matrix, std::int64_t in, std::int64_t out) {
    if (in == hidden_ && out == hidden_) {
      square_.push_back(std::move(matrix));
    } else if (in == hidden_) {
      readers_.push_back({std::move(matrix), out});
    } else if (out == hidden_) {
      writers_.push_back({std::move(matrix), in});
    } else {
      if (matrix.weight) others_.push_back(matrix.weight);
      if (matrix.bias) others_.push_back(matrix.bias);
    }
  }
  void add_other(const Tensor& parameter) { others_.push_back(parameter); }

  Tensor operator()(const Tensor& x, const Pass&) const {
    const Tensor normed = layer_norm(x, {}, {});
    std::vector<std::pair<Tensor, std::int64_t>> made;
    for (const Sized& reader : readers_) {
      const Tensor wide = reader.matrix(normed);
      made.emplace_back(activate(Activation::kSilu, wide), reader.size);
    }
    Tensor hidden = touched(x, others_);
    // Of matrices as wide as the model, all but the last read; the last is their output.
    Tensor joined = normed;
    for (std::size_t i = 0; i + 1 < square_.size(); ++i) {
      const Tensor part = square_[i](normed);
      joined = i == 0 ? part : mul(joined, part);
    }
    if (!square_.empty()) hidden = add_to(hidden, square_.back()(joined));
    for (const Sized& writer : writers_)
      hidden = add_to(hidden, writer.matrix(input_of(x, made, writer.size)));
    // What nothing read belongs to the result all the same, or it would not learn.
    for (const auto& [tensor, size] : made) {
      const bool used = std::any_of(writers_.begin(), writers_.end(),
                                    [size = size](const Sized& w) { return w.size == size; });
      if (!used) hidden = add_to(hidden, mean(tensor, {-1}, true));
    }
    return hidden;
  }

 private:
  struct Sized {
    Linear matrix;
    std::int64_t size;
  };

  static Tensor add_to(const Tensor& hidden, const Tensor& part) {
    return memfathom::add(hidden, part);
  }

  // The product of all results of that width, as gated layers have it.
  static Tensor input_of(const Tensor& x, const std::vector<std::pair<Tensor, std::int64_t>>& made,
                         std::int64_t size) {
    Tensor input;
    for (const auto& [tensor, width] : made) {
      if (width != size) continue;
      input = input ? mul(input, tensor) : tensor;
    }
    return input ? input : x.session().zeros({x.size(0), x.size(1), size}, x.dtype());
  }

  std::int64_t hidden_;
  std::vector<Sized> readers_, writers_;
  std::vector<Linear> square_;
  std::vector<Tensor> others_;
};

std::int64_t hidden_size(const Node& config, const std::vector<StoredTensor>& tensors) {
  const std::int64_t given = count_or(config, {"hidden_size", "d_model", "n_embd", "dim"}, 0);
  if (given > 0) return given;
  std::map<std::int64_t, std::int64_t> seen;
  for (const StoredTensor& tensor : tensors) {
    if (!is_matrix(tensor)) continue;
    ++seen[tensor.shape[0]];
    ++seen[tensor.shape[1]];
  }
  const auto most = std::max_element(
      seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most != seen.end() ? most->first : 0;
}

class StoredNetwork final : public Network {
 public:
  StoredNetwork(Builder& builder, const Node& config, const std::vector<StoredTensor>& tensors,
                const ModelSettings& settings)
      : session_(builder.session()), settings_(settings), hidden_(hidden_size(config, tensors)) {
    if (hidden_ < 1) config.refuse("its safetensors have no matrices to build a network from");
    require_sequence_length(settings_);
    std::map<std::string_view, std::vector<const StoredTensor*>, decltype(&comes_before)> blocks(
        &comes_before);
    for (const StoredTensor& tensor : tensors) {
      if (tensor.shape.elements() == 0) continue;
      const std::string_view block = block_of(tensor.name);
      if (block.empty()) {
        add_outside(builder, tensor);
      } else {
        blocks[block].push_back(&tensor);
      }
    }
    std::int64_t index = 0;
    blocks_.reserve(blocks.size());
    for (const auto& [name, members] : blocks) {
      const BlockScope scope(builder, index++, static_cast<std::int64_t>(blocks.size()), hidden_);
      blocks_.emplace_back(hidden_);
      for (const StoredTensor* tensor : members) add_inside(builder, *tensor);
    }
  }

  std::size_t blocks() const { return blocks_.size(); }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&ids_, &input_, &labels_});
    const Shape shape{size, settings_.sequence_length};
    if (table_) {
      ids_ = session_.zeros(shape, DType::kInt64);
    } else {
      input_ = session_.zeros({size, settings_.sequence_length, hidden_}, settings_.precision);
    }
    if (targets && head_) labels_ = session_.zeros(shape, DType::kInt64);
  }

  Tensor loss(Tensor* output) override {
    const Tensor result = forward();
    if (output != nullptr) *output = result;
    const ComponentScope scope(session_, Component::kLogitsLoss);
    if (!head_) return mean_all(result);
    return causal_lm_loss(result, labels_, {settings_.transformers.loss_shifts_logits(), true});
  }

  Tensor forward() override {
    Tensor hidden = table_ ? embedding(*table_, ids_) : input_;
    prepare_embeddings(settings_, hidden);
    const Pass pass;
    for (const StoredBlock& block : blocks_) hidden = run_block(settings_, block, hidden, pass);
    hidden = touched(hidden, others_);
    if (!head_) return hidden;
    const ComponentScope scope(session_, Component::kLogitsLoss);
    return (*head_)(hidden);
  }

 private:
  void add_outside(Builder& builder, const StoredTensor& tensor) {
    if (is_matrix(tensor) && tensor.shape[1] == hidden_ &&
        contains_any(tensor.name, {"head", "output", "embed_out"}) && !head_) {
      const HeadScope scope(builder);
      head_ = Linear{};
      head_->weight = builder.parameter(tensor.name, tensor.shape);
      return;
    }
    const bool words = is_matrix(tensor) && tensor.shape[1] == hidden_ &&
                       contains_any(tensor.name, {"embed", "wte", "shared", "word"});
    if (words && (!table_ || table_->size(0) < tensor.shape[0])) {
      if (table_) others_.push_back(*table_);
      table_ = builder.parameter(tensor.name, tensor.shape);
      return;
    }
    if (const std::optional<Tensor> parameter = made(builder, tensor))
      others_.push_back(*parameter);
  }

  void add_inside(Builder& builder, const StoredTensor& tensor) {
    StoredBlock& block = blocks_.back();
    if (!is_matrix(tensor)) {
      if (const std::optional<Tensor> parameter = made(builder, tensor))
        block.add_other(*parameter);
      return;
    }
    // "mlp.up_proj" of "mlp.up_proj.weight": adapters go by its last part.
    const std::string name = tensor.name.substr(0, tensor.name.size() - 7);
    const std::size_t dot = name.rfind('.');
    const PathScope scope(builder, name.substr(0, dot));
    block.add(make_linear(builder, name.substr(dot + 1), tensor.shape[1], tensor.shape[0],
                          {.bias = false}),
              tensor.shape[1], tensor.shape[0]);
  }

  // Whole numbers are what quantized weights are stored as: they keep their type, and do not learn.
  static std::optional<Tensor> made(Builder& builder, const StoredTensor& tensor) {
    if (is_floating(tensor.dtype)) return builder.parameter(tensor.name, tensor.shape);
    builder.count_parameters(tensor.shape.elements());
    builder.frozen_parameter(tensor.name, tensor.shape, tensor.dtype);
    return std::nullopt;
  }

  Session& session_;
  ModelSettings settings_;
  std::int64_t hidden_;
  std::optional<Tensor> table_;
  std::optional<Linear> head_;
  std::vector<StoredBlock> blocks_;
  std::vector<Tensor> others_;
  Tensor ids_, input_, labels_;
};

}  // namespace

std::unique_ptr<Network> make_stored_network(Builder& builder, const Node& config,
                                             const std::vector<StoredTensor>& tensors,
                                             const ModelSettings& settings,
                                             std::vector<std::string>& assumptions) {
  auto network = std::make_unique<StoredNetwork>(builder, config, tensors, settings);
  builder.finish();
  const Node* type = find_any(config, {"model_type", "_class_name"});
  assumptions.push_back(fmt::format(
      "the family {} is not known: the {} weights of its safetensors header are counted as they "
      "are, and its {} blocks are taken for linear layers with activations; attention, "
      "convolutions "
      "and what else it computes are not known",
      type != nullptr ? type->shown() : "of this config", tensors.size(), network->blocks()));
  return network;
}

}  // namespace memfathom
