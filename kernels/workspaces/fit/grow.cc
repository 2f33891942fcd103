#include "kernels/workspaces/fit/grow.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>

namespace memfathom {
namespace {

constexpr std::size_t kMinLeafRows = 10;
constexpr std::size_t kMaxCandidateForms = 32;

struct Split {
  double gain = 0;
  int feature = -1;
  float threshold = 0;
};

struct GrowingNode {
  std::vector<std::uint32_t> rows;
  double loss = 0;
  int form = 0;
  Split best;
  std::unique_ptr<GrowingNode> left, right;
};

// The forms that come closest for the most rows: the search for a split is linear in how many are
// tried.
std::vector<int> frequent_forms(std::span<const TreeTrainingRow> rows,
                                std::span<const WorkspaceForm> forms) {
  std::vector<int> wins(forms.size());
  for (const TreeTrainingRow& row : rows) {
    std::size_t best = 0;
    for (std::size_t f = 1; f < forms.size(); ++f) {
      if (relative_error(bytes_of(forms[f], row.sizes), row) <
          relative_error(bytes_of(forms[best], row.sizes), row))
        best = f;
    }
    ++wins[best];
  }
  std::vector<int> order(forms.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return wins[static_cast<std::size_t>(a)] > wins[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(order.size(), kMaxCandidateForms));
  return order;
}

class Grower {
 public:
  Grower(std::span<const TreeTrainingRow> rows, std::span<const WorkspaceForm> forms)
      : rows_(rows), kept_(frequent_forms(rows, forms)), forms_(kept_.size()) {
    errors_.reserve(rows.size() * forms_);
    for (const TreeTrainingRow& row : rows) {
      for (const int form : kept_) {
        errors_.push_back(static_cast<float>(
            relative_error(bytes_of(forms[static_cast<std::size_t>(form)], row.sizes), row)));
      }
    }
  }

  std::unique_ptr<GrowingNode> make(std::vector<std::uint32_t> rows) const {
    auto node = std::make_unique<GrowingNode>();
    node->rows = std::move(rows);
    std::vector<double> total(forms_);
    for (const std::uint32_t row : node->rows) add(total, row, 1);
    const auto least = std::min_element(total.begin(), total.end());
    node->loss = *least;
    node->form = kept_[static_cast<std::size_t>(least - total.begin())];
    node->best = best_split(*node, total);
    return node;
  }

  void split(GrowingNode& node) const {
    std::vector<std::uint32_t> left, right;
    for (const std::uint32_t row : node.rows) {
      (rows_[row].features[static_cast<std::size_t>(node.best.feature)] <= node.best.threshold
           ? left
           : right)
          .push_back(row);
    }
    node.left = make(std::move(left));
    node.right = make(std::move(right));
  }

 private:
  void add(std::vector<double>& sums, std::uint32_t row, double sign) const {
    const float* errors = &errors_[row * forms_];
    for (std::size_t f = 0; f < forms_; ++f) sums[f] += sign * static_cast<double>(errors[f]);
  }

  Split best_split(const GrowingNode& node, const std::vector<double>& total) const {
    Split best;
    std::vector<std::uint32_t> order = node.rows;
    std::vector<double> left(forms_);
    for (int feature = 0; feature < kConvolutionFeatureCount; ++feature) {
      const auto value = [&](std::uint32_t row) {
        return rows_[row].features[static_cast<std::size_t>(feature)];
      };
      std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return value(a) < value(b) || (value(a) == value(b) && a < b);
      });
      std::fill(left.begin(), left.end(), 0);
      for (std::size_t i = 0; i + kMinLeafRows < order.size(); ++i) {
        add(left, order[i], 1);
        const float here = value(order[i]);
        const float next = value(order[i + 1]);
        if (i + 1 < kMinLeafRows || here == next) continue;
        double left_loss = left[0];
        double right_loss = total[0] - left[0];
        for (std::size_t f = 1; f < forms_; ++f) {
          left_loss = std::min(left_loss, left[f]);
          right_loss = std::min(right_loss, total[f] - left[f]);
        }
        const double gain = node.loss - left_loss - right_loss;
        if (gain > best.gain + 1e-9) best = {gain, feature, here + (next - here) / 2};
      }
    }
    return best;
  }

  std::span<const TreeTrainingRow> rows_;
  std::vector<int> kept_;  // the forms tried, as indices into all forms
  std::size_t forms_;
  std::vector<float> errors_;
};

void write_preorder(const GrowingNode& node, std::vector<FittedNode>& into) {
  const std::size_t at = into.size();
  if (node.left == nullptr) {
    into.push_back({-1, 0, static_cast<std::int16_t>(node.form)});
    return;
  }
  into.push_back({static_cast<std::int8_t>(node.best.feature), node.best.threshold, 0});
  write_preorder(*node.left, into);
  into[at].right = static_cast<std::int16_t>(into.size());
  write_preorder(*node.right, into);
}

}  // namespace

double relative_error(std::int64_t predicted, const TreeTrainingRow& row) {
  const double whole = static_cast<double>(row.sizes.input + row.sizes.output + row.sizes.weight);
  return std::abs(static_cast<double>(predicted - row.bytes)) / std::max(whole, 0x1p20);
}

std::vector<FittedNode> grow_tree(std::span<const TreeTrainingRow> rows,
                                  std::span<const WorkspaceForm> forms, int leaves) {
  const Grower grower(rows, forms);
  std::vector<std::uint32_t> all(rows.size());
  std::iota(all.begin(), all.end(), 0U);
  const std::unique_ptr<GrowingNode> root = grower.make(std::move(all));
  std::vector<GrowingNode*> open{root.get()};
  while (static_cast<int>(open.size()) < leaves) {
    const auto next = std::max_element(
        open.begin(), open.end(),
        [](const GrowingNode* a, const GrowingNode* b) { return a->best.gain < b->best.gain; });
    if ((*next)->best.feature < 0) break;
    GrowingNode* node = *next;
    grower.split(*node);
    *next = node->left.get();
    open.push_back(node->right.get());
  }
  std::vector<FittedNode> nodes;
  write_preorder(*root, nodes);
  return nodes;
}

}  // namespace memfathom
