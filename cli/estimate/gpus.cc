#include "estimator/gpus.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <vector>

#include "cli/commands.h"
#include "cli/estimate/estimation.h"
#include "cli/estimate/job_source.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/on_all_cores.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

struct Card {
  Gpu gpu;
  std::optional<Estimate> estimate;  // of the job, on this card
};

bool fits(const Estimate& estimate) {
  return estimate.verdict.status == VerdictStatus::kFits ||
         estimate.verdict.status == VerdictStatus::kTight;
}

// The job on every card, smallest memory first; those it does not fit on are left out.
std::vector<Card> cards_for(Node document, const Context& context) {
  const Estimation estimation(context);
  std::vector<Card> cards;
  for (const char* key : {"memory", "device", "used_by_others"}) {
    const Node* target = document.find("target");
    if (target == nullptr || target->find(key) == nullptr) continue;
    Node changed = *target;
    changed.erase(key);  // what was said about another card
    document.set("target", std::move(changed));
  }
  for (const Gpu& gpu : known_gpus_by_memory()) cards.push_back({gpu, std::nullopt});
  on_all_cores(cards.size(), [&](std::size_t i) {
    Node placed = document;
    placed.assign("target.gpu", Node::string(std::string(cards[i].gpu.name)));
    cards[i].estimate = estimation.answer(read_job(placed));
  });
  std::erase_if(cards, [](const Card& card) { return !fits(*card.estimate); });
  return cards;
}

Json to_json(const Card& card) {
  Json json{{"name", card.gpu.name},
            {"memory_bytes", card.gpu.memory().count()},
            {"architecture", card.gpu.architecture},
            {"vendor", card.gpu.vendor},
            {"product", card.gpu.product},
            {"kind", card.gpu.kind},
            {"memory_as_shown_by_driver", card.gpu.as_shown}};
  if (card.estimate) {
    json["device_peak_bytes"] = card.estimate->totals.device_peak.count();
    json["headroom_bytes"] = card.estimate->verdict.headroom->count();
    json["verdict"] = to_string(card.estimate->verdict.status);
  }
  return json;
}

// `exact`: sizes as bytes, for programs.
Table table_of(const std::vector<Card>& cards, bool with_job, bool exact) {
  const auto size = [&](Bytes bytes) {
    return exact ? fmt::format("{}", bytes.count()) : to_string(bytes);
  };
  std::vector<Column> columns{
      {"name"}, {"memory", Align::kRight}, {"architecture"}, {"kind"}, {"product"}};
  if (with_job)
    columns.insert(columns.begin() + 2,
                   {{"job", Align::kRight}, {"left", Align::kRight}, {"verdict"}});
  Table table(columns);
  for (const Card& card : cards) {
    std::vector<Cell> cells{card.gpu.name, size(card.gpu.memory()), card.gpu.architecture,
                            card.gpu.kind, card.gpu.product};
    if (card.estimate) {
      const Estimate& estimate = *card.estimate;
      cells.insert(cells.begin() + 2,
                   {Cell(size(estimate.totals.device_peak)), Cell(size(*estimate.verdict.headroom)),
                    Cell(to_string(estimate.verdict.status))});
    }
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace

ExitCode run_gpus(const Arguments& arguments, Context& context) {
  OptionParser parser("gpus");
  JobSource source;
  bool only_fitting = false;
  source.declare(parser);
  parser.flag("--fits", only_fitting);
  parser.parse(arguments);

  std::vector<Card> cards;
  if (only_fitting || source.given()) {
    cards = cards_for(source.read("gpus --fits").document, context);
    only_fitting = true;
  } else {
    for (const Gpu& gpu : known_gpus_by_memory()) cards.push_back({gpu, std::nullopt});
  }
  if (context.format == Format::kJson) {
    Json list = Json::array();
    for (const Card& card : cards) list.push_back(to_json(card));
    context.out << Json{{"gpus", std::move(list)}}.dump(2) << '\n';
  } else if (cards.empty()) {
    context.note(
        "the job fits on no card that is known here; memfathom recommend says what would make it "
        "smaller");
  } else {
    context.out << rendered(table_of(cards, only_fitting, context.format == Format::kCsv), context);
  }
  return cards.empty() ? ExitCode::kNo : ExitCode::kYes;
}

}  // namespace memfathom
