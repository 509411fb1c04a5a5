#include "core/error.hpp"
#include "core/format.hpp"
#include "report/exports.hpp"
#include "report/recorded_asks.hpp"

namespace nas {

namespace {

std::string column_title(const ObjectiveRecord& objective) {
  const auto unit = objective.unit == "1" ? "" : " (" + objective.unit + ")";
  return (objective.maximise ? "-" : "") + objective.name + unit;
}

}  // namespace

std::string point_sets(std::span<const RunSummary> runs, bool all) {
  std::string header;
  std::string points;
  for (const auto& run : runs) {
    const auto shown = all ? run.ranking.size() : run.front.size();
    if (shown == 0) throw InputError(run_title(run) + ": no candidate could be evaluated");
    header += "# " + run_title(run) + ": " + (all ? "all " : "non-dominated ") +
              std::to_string(shown) + " of " + std::to_string(run.ranking.size()) +
              " candidates after " + std::to_string(run.search.evaluations) + " evaluations\n";
    if (!points.empty()) points += '\n';
    for (std::size_t i = 0; i < shown; ++i) {  // the front comes first
      std::vector<std::string> numbers;
      for (const double value : run.ranking[i].fitness) numbers.push_back(shortest(value));
      points += join(numbers, " ") + '\n';
    }
  }
  std::vector<std::string> columns;
  for (const auto& objective : runs.front().objectives) columns.push_back(column_title(objective));
  return header + "# all minimised: " + join(columns) + '\n' + points;
}

}  // namespace nas
