#pragma once

#include "core/temporary_folder.hpp"
#include "evaluation/measurement.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "table/answer.hpp"
#include "table/study_table.hpp"
#include "unit/paper_components.hpp"
#include "unit/small_table.hpp"

namespace nas::testing {

/// The genotypes of the small table's functions.
inline SearchSpace small_space() {
  return SearchSpace({{.name = "similarity", .options = {"dot", "additive"}},
                      {.name = "normalization", .options = {"softmax", "relu_norm"}},
                      {.name = "gating", .options = {"none"}},
                      {.name = "temperature", .options = {"fixed", "learned"}},
                      {.name = "bias", .options = {"bias", "no_bias"}},
                      {.name = "attention_dropout", .min = 0.0, .max = 0.0}});
}

inline std::string small_name(const Genotype& genotype) {
  Mechanism mechanism;
  mechanism.set("attention_dropout", 0.0);
  for (const auto& gene : component_genes()) mechanism.set(gene, genotype.option(gene));
  mechanism.set("bias", genotype.option("bias"));
  return to_string(canonical(mechanism, Semantics::corrected));
}

/// Perplexity, and with `several` objectives the parameters, too.
inline ObjectiveSet small_objectives(bool several = false) {
  ObjectiveSet set;
  set.objectives.push_back(
      {.name = "perplexity",
       .key = "perplexity",
       .settings = {},
       .objective = {.unit = "1",
                     .trained = [](const Evaluation& e) { return quality(e, "perplexity"); }},
       .range = Range{.best = 10.0, .worst = 20.0}});
  if (!several) return set;
  set.objectives.push_back(
      {.name = "parameters",
       .key = "parameters",
       .settings = {},
       .objective = {.unit = "1",
                     .trained = [](const Evaluation& e) { return e.values.at("parameters"); }},
       .range = Range{.best = 1000.0, .worst = 1200.0}});
  return set;
}

inline Table small_table(std::vector<Evaluation> cells = small_cells()) {
  const TemporaryFolder folder;
  write_table(small_content(std::move(cells)), folder.path() / "small.table");
  return Table(folder.path() / "small.table");
}

/// Answers from a table as the problem `tabular` does.
class TableMeasurement : public Measurement {
 public:
  TableMeasurement(Table table, ReplayMode mode, std::uint64_t seed)
      : table_(std::move(table)), mode_(mode), replay_(table_, mode, seed) {}
  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return {.name = small_name(genotype)};
  }
  [[nodiscard]] nlohmann::json identity() const override { return {}; }
  [[nodiscard]] bool expensive() const override { return false; }
  [[nodiscard]] std::vector<std::int64_t> rungs() const override { return table_.steps(); }
  void measure(const Task& task, Evaluation& evaluation) override {
    const auto mechanism = table_.find(task.candidate.name).value();
    auto recorded =
        mode_ == ReplayMode::mean
            ? mean_evaluation(recorded_replicates(table_, mechanism), 0.0)
            : table_.evaluation(mechanism, replay_.replicate(mechanism, task.replicate));
    if (task.until > 0) {
      recorded = ended_at(std::move(recorded), task.until, 0.0);
      if (recorded.status == Status::ok && task.until < steps()) recorded.status = Status::paused;
    }
    evaluation.status = recorded.status;
    evaluation.curve = recorded.curve;
    evaluation.values = recorded.values;
    evaluation.measured["train_seconds"] = recorded.measured.at("cpu_seconds");
  }

 private:
  Table table_;
  ReplayMode mode_;
  Replay replay_;
};

/// Whose training runs are expected to take the longer, the longer the mechanism's name.
class UnequalMeasurement final : public TableMeasurement {
 public:
  using TableMeasurement::TableMeasurement;
  [[nodiscard]] double expected_cost(const Candidate& candidate) const override {
    return static_cast<double>(candidate.name.size());
  }
};

/// Rejects untrained what scores additively.
class ScreeningMeasurement final : public TableMeasurement {
 public:
  using TableMeasurement::TableMeasurement;
  void screen(const Task& task, Evaluation& evaluation) override {
    if (task.candidate.name.starts_with("additive")) evaluation.status = Status::rejected;
  }
};

/// To which what scores additively is no model.
class RefusingMeasurement final : public TableMeasurement {
 public:
  using TableMeasurement::TableMeasurement;
  [[nodiscard]] Candidate parse(const std::string& name) const override {
    return {.name = name, .refusal = name.starts_with("additive") ? "it is additive" : ""};
  }
};

inline StudyTable small_study(ReplayMode mode = ReplayMode::noisy, bool several = false,
                              const Table& table = small_table(),
                              const SearchSpace& space = small_space()) {
  constexpr std::uint64_t kSeed = 77;
  return StudyTable(table, {.space = space,
                            .objectives = small_objectives(several),
                            .mode = mode,
                            .problem = std::make_shared<TableMeasurement>(table, mode, kSeed)});
}

}  // namespace nas::testing
