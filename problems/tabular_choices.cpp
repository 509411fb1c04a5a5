// Searching without measuring: a table answers whose candidates are choices, an option for each gene.

#include "core/error.hpp"
#include "core/words.hpp"
#include "search/problem.hpp"
#include "store/replicates.hpp"
#include "table/answer.hpp"
#include "table/replay.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

constexpr char kSeparator = '|';  // of the options in a candidate's name

Table table_of(const Parameters& settings) {
  Table table(settings.get<std::string>("table"));
  if (table.facts().contains("space")) return table;
  throw InputError(
      "problem.table: its candidates are mechanisms, not choices: problem.type must be tabular");
}

SearchSpace space_of(const Table& table) {
  std::vector<Gene> genes;
  for (const auto& gene : table.facts().at("space"))
    genes.push_back({.name = gene.at("name"), .options = gene.at("options")});
  return SearchSpace(std::move(genes));
}

/// Values of the table's cells, all of them less is better, between 0 and `most`.
std::vector<ChosenObjective> objectives_of(const Table& table) {
  std::vector<ChosenObjective> chosen;
  for (const auto& one : table.facts().at("objectives")) {
    const std::string name = one.at("name");
    chosen.push_back(
        {.name = name,
         .key = name,
         .settings = {},
         .objective = {.unit = one.at("unit"),
                       .trained = [name](const auto& of) { return of.values.at(name); }},
         .range = Range{0.0, one.at("most").get<double>()}});
  }
  return chosen;
}

class TabularChoices final : public Problem {
 public:
  explicit TabularChoices(const ProblemInputs& inputs)
      : objectives_(inputs.objectives),
        seed_(inputs.seed),
        table_(table_of(inputs.settings)),
        mode_(parse_replay_mode(inputs.settings.get<std::string>("mode"))),
        replay_(table_, mode_, seed_),
        space_(space_of(table_)) {
    const auto recorded = mode_ == ReplayMode::mean ? 1 : table_.num_replicates();
    if (inputs.evaluation.get<Integer>("replicates") > recorded)
      throw InputError("evaluation.replicates, must be at most " + std::to_string(recorded) +
                       ": the table answers with no more");
  }

  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    std::string name;
    for (const auto& gene : space_.genes())
      name += (name.empty() ? "" : std::string(1, kSeparator)) + genotype.option(gene.name);
    return {.name = name, .genotype = genotype};
  }

  [[nodiscard]] Candidate parse(const std::string& name) const override {
    const auto options = split(name, kSeparator);
    const auto& genes = space_.genes();
    if (options.size() != genes.size())
      throw InputError(name + ", must have an option for each gene, | between them");
    std::vector<std::pair<std::string, GeneValue>> values;
    for (std::size_t i = 0; i < genes.size(); ++i)
      values.emplace_back(genes[i].name, std::string(options[i]));
    const Genotype genotype(std::move(values));
    (void)space_.encode(genotype);  // refuses what is not in the space
    return canonical(genotype);
  }

  [[nodiscard]] std::string label(const std::string& candidate) const override { return candidate; }

  [[nodiscard]] nlohmann::json identity() const override {
    nlohmann::json identity = {{"problem", "tabular_choices"},
                               {"table", table_.sha256()},
                               {"mode", to_string(mode_)},
                               {"search_seed", seed_}};
    for (const auto& constraint : objectives_->constraints)
      identity["constraints"].push_back(constraint.text());
    return identity;
  }

  [[nodiscard]] bool expensive() const override { return false; }

  void measure(const Task& task, Evaluation& evaluation) override {
    const auto number = number_of(task.candidate.name);
    const auto answer = mode_ == ReplayMode::mean
                            ? mean_evaluation(recorded_replicates(table_, number), 0.0)
                            : table_.evaluation(number, replay_.replicate(number, task.replicate));
    evaluation.status = answer.status;
    evaluation.reason = answer.reason;
    evaluation.values = answer.values;
    evaluation.measured["train_seconds"] = charged_seconds(answer);
  }

  [[nodiscard]] nlohmann::json facts() const override {
    auto facts = table_.facts();
    facts["table"] = {{"name", facts.at("name")},
                      {"sha256", table_.sha256()},
                      {"mechanisms", table_.num_mechanisms()},
                      {"replicates", table_.num_replicates()},
                      {"mode", to_string(mode_)},
                      {"step", 0}};
    for (const auto* of_the_record : {"sources", "name", "objectives"}) facts.erase(of_the_record);
    return facts;
  }

  [[nodiscard]] int num_workers() const override { return 1; }
  double calibrate_seconds(const Candidate& /*candidate*/) override { return 0.0; }

  /// What all replicates say together; nothing was held out of the table.
  [[nodiscard]] GroundTruth truth() const override {
    GroundTruth truth;
    for (Integer i = 0; i < table_.num_mechanisms(); ++i) {
      const auto all = recorded_replicates(table_, i);
      truth.values[table_.mechanism(i)] = objectives_->judge(pointers(all)).fitness;
    }
    return truth;
  }

 private:
  [[nodiscard]] Integer number_of(const std::string& candidate) const {
    if (const auto number = table_.find(candidate)) return *number;
    throw InputError("the table has no " + candidate);
  }

  const ObjectiveSet* objectives_;
  std::uint64_t seed_;
  Table table_;
  ReplayMode mode_;
  Replay replay_;
  SearchSpace space_;
};

NAS_REGISTER_PROBLEM(
    {.key = "tabular_choices",
     .summary = "placements, or other choices of one option a gene, answered from a table of what "
                "was measured of each: nothing is measured",
     .settings = {{.name = "table",
                   .default_value = std::string(),
                   .help = "file made by analysis/studies/packed_placements.py: beside the "
                           "configuration, in the current folder, or installed",
                   .required = true,
                   .names_file = true},
                  {.name = "mode",
                   .default_value = std::string("noisy"),
                   .help = "what answers: noisy, a recorded replicate, drawn without replacement "
                           "for each candidate; mean, the mean over all; paired, the same "
                           "replicate for all candidates",
                   .choices = {"noisy", "mean", "paired"}}},
     .file = __FILE__},
    [] {
      return ProblemKind{
          .space = [](const Parameters& settings) { return space_of(table_of(settings)); },
          .objectives =
              [](const Parameters& settings) { return objectives_of(table_of(settings)); },
          .make = [](const ProblemInputs& inputs) -> std::shared_ptr<Problem> {
            return std::make_shared<TabularChoices>(inputs);
          }};
    });

}  // namespace

}  // namespace nas
