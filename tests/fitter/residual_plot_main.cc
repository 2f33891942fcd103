// Writes the residual plot of docs/fitting.md: a virtual card, profiled and fitted.
#include <cstdio>
#include <fstream>

#include "fitter/residual_plot.h"
#include "tests/support/virtual_card.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE.svg\n", argv[0]);
    return 2;
  }
  using namespace memfathom;
  const testing::VirtualCard card(3);
  const testing::Campaign campaign = testing::profile(card, 600, 1003);
  FitOptions options;
  options.name = "virtual:3";
  options.environment.framework = "memfathom";
  const FitSummary summary = fit(campaign.rows, campaign.workspaces, options);
  std::ofstream file(argv[1]);
  file << residual_plot(summary);
  std::printf("%s", summary.full().c_str());
  return file ? 0 : 4;
}
