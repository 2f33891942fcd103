#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/commands.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "cli/text/count_text.h"
#include "estimator/json/estimate_json.h"
#include "estimator/json/lists_json.h"
#include "estimator/models/model_list.h"

namespace memfathom {

ExitCode run_models(const Arguments& arguments, Context& context) {
  OptionParser parser("models");
  parser.parse(arguments);
  const std::vector<CataloguedModel> models = model_catalogue();
  if (context.format == Format::kJson) {
    context.out << to_text(models_json(models), kIndented) << '\n';
    return ExitCode::kYes;
  }
  Table table({{"name"}, {"parameters", Align::kRight}, {"description"}});
  for (const CataloguedModel& model : models) {
    table.add_row({model.name,
                   context.format == Format::kCsv ? fmt::format("{}", model.parameters)
                                                  : count_text(model.parameters),
                   model.description});
  }
  context.out << rendered(table, context);
  return ExitCode::kYes;
}

}  // namespace memfathom
