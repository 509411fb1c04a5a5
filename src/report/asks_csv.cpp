#include "core/format.hpp"
#include "report/csv.hpp"
#include "report/exports.hpp"
#include "report/recorded_asks.hpp"

namespace nas {

std::string asks_csv(const RunSummary& run) {
  std::vector<std::string> header{"number", "batch", "candidate", "label"};
  for (const auto& gene : recorded_genes(run)) header.push_back(gene.name);
  header.insert(header.end(), {"replicates", "status"});
  for (const auto& objective : run.objectives) header.push_back(objective.name);
  for (const auto& objective : run.objectives) header.push_back("fitness_" + objective.name);
  header.insert(header.end(), {"trained", "train_seconds", "reused"});
  auto text = csv_line(header);
  for (const auto& record : recorded_asks(run)) {
    const auto& ask = *record.ask;
    const auto& candidate = record.evaluation->candidate;
    std::vector<std::string> row{std::to_string(ask.number + 1), std::to_string(ask.batch),
                                 candidate, run.label(candidate)};
    row.insert(row.end(), record.genes.begin(), record.genes.end());
    row.push_back(std::to_string(ask.evaluations.size()));
    row.emplace_back(to_string(record.status));
    for (const double value : record.fitness) {
      row.push_back(record.usable ? shortest(value) : std::string());
    }
    for (const double value : ask.fitness) row.push_back(shortest(value));
    row.push_back(std::to_string(record.trained));
    row.push_back(shortest(record.seconds));
    row.emplace_back(ask.reused ? "true" : "false");
    text += csv_line(row);
  }
  return text;
}

}  // namespace nas
