#include "table/study_table.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace nas {

namespace {

/// More combinations are not kept: each ask finds its mechanism by name.
constexpr double kMostCombinations = 1e6;

/// The number of the combination of options that a genotype has, the first gene's changing fastest.
std::size_t combination_of(const SearchSpace& space, const Genotype& genotype) {
  std::size_t number = 0;
  std::size_t stride = 1;
  auto value = genotype.values().begin();  // in the order of the genes
  for (const auto& gene : space.genes()) {
    const auto& chosen = (value++)->second;
    if (!gene.categorical()) continue;
    const auto option =
        std::find(gene.options.begin(), gene.options.end(), std::get<std::string>(chosen));
    number += stride * static_cast<std::size_t>(option - gene.options.begin());
    stride *= gene.options.size();
  }
  return number;
}

/// The genotype of such a combination; a real gene has its only value.
Genotype genotype_of(const SearchSpace& space, std::size_t number) {
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& gene : space.genes()) {
    if (!gene.categorical()) {
      values.emplace_back(gene.name, gene.min);
      continue;
    }
    values.emplace_back(gene.name, gene.options[number % gene.options.size()]);
    number /= gene.options.size();
  }
  return Genotype(std::move(values));
}

/// Calls what works on an evaluation; an exception makes it a failure.
template <class Work>
void guarded(Evaluation& evaluation, Work work) {
  try {
    work();
  } catch (const std::exception& error) {  // a cell that is missing
    evaluation.status = Status::failed;
    evaluation.reason = error.what();
  }
}

/// What is known before training; it is usable if training is worthwhile.
Evaluation screened(Measurement& problem, const Task& task) {
  Evaluation evaluation;
  evaluation.candidate = task.candidate.name;
  evaluation.replicate = task.replicate;
  evaluation.status = Status::ok;
  evaluation.measured = nlohmann::json::object();
  guarded(evaluation, [&] { screen(problem, task, evaluation); });
  return evaluation;
}

Task task_of(const Candidate& candidate, std::int64_t n, std::int64_t until = 0) {
  return {.candidate = candidate, .replicate = n, .id = {}, .identity = {}, .until = until};
}

}  // namespace

Evaluation answer_of(Measurement& problem, const Candidate& candidate, std::int64_t n,
                     std::int64_t until) {
  const auto task = task_of(candidate, n, until);
  auto evaluation = screened(problem, task);
  if (evaluation.status == Status::ok) {
    guarded(evaluation, [&] { problem.measure(task, evaluation); });
  }
  return evaluation;
}

StudyTable::StudyTable(Table table, Study study)
    : table_(std::move(table)), study_(std::move(study)) {
  for (std::int64_t i = 0; i < table_.num_mechanisms(); ++i) read_mechanism(i);
  find_combinations();
}

/// Cells of a mechanism: the mean is one.
std::int64_t StudyTable::num_cells() const {
  return study_.mode == ReplayMode::mean ? 1 : table_.most_replicates();
}

void StudyTable::read_mechanism(std::int64_t mechanism) {
  const auto candidate = study_.problem->parse(table_.mechanism(mechanism));
  const auto before = screened(*study_.problem, task_of(candidate, 0));
  costs_.push_back(candidate.refusal.empty() ? study_.problem->expected_cost(candidate) : 0.0);
  const auto begin = index(mechanism, 0);
  evaluations_.resize(begin + static_cast<std::size_t>(num_cells()));
  study_.rungs.insert(0);
  for (const auto until : study_.rungs) cells_[until].resize(evaluations_.size());
  for (std::int64_t replicate = 0; replicate < num_cells(); ++replicate) {
    if (replicate >= table_.num_replicates() && !table_.has(mechanism, replicate)) continue;
    const auto n = study_.mode == ReplayMode::mean ? 0 : kFirstHeldOutReplicate + replicate;
    const auto i = index(mechanism, replicate);
    evaluations_[i] = answer_of(*study_.problem, candidate, n);
    for (const auto until : study_.rungs) {
      const auto paused =
          until > 0 ? answer_of(*study_.problem, candidate, n, until) : evaluations_[i];
      auto judgement = study_.objectives.judge(std::array{&paused});
      cells_.at(until)[i] = {.fitness = std::move(judgement.fitness),
                             .status = judgement.status,
                             .untrained = before.status != Status::ok,
                             .rejected = is_screened_out(before),
                             .seconds = paused.measured.value("train_seconds", 0.0),
                             .steps = paused.curve.empty() ? 0 : paused.curve.back().step,
                             .feasible = judgement.reason.empty()};
    }
  }
}

std::size_t StudyTable::index(std::int64_t mechanism, std::int64_t replicate) const {
  if (study_.mode == ReplayMode::mean) return static_cast<std::size_t>(mechanism);
  return static_cast<std::size_t>(mechanism * num_cells() + replicate);
}

const StudyTable::Cell& StudyTable::cell(std::int64_t mechanism, std::int64_t replicate,
                                         std::int64_t until) const {
  return cells_.at(until)[index(mechanism, replicate)];
}

Judgement StudyTable::judge(std::int64_t mechanism,
                            std::span<const std::int64_t> replicates) const {
  std::vector<const Evaluation*> evaluations;
  for (const auto replicate : replicates) {
    evaluations.push_back(&evaluations_[index(mechanism, replicate)]);
  }
  return study_.objectives.judge(evaluations);
}

std::vector<double> StudyTable::believed(std::int64_t mechanism) const {
  std::vector<std::int64_t> all(
      static_cast<std::size_t>(std::min(num_cells(), table_.num_replicates())));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return judge(mechanism, all).fitness;
}

std::int64_t StudyTable::find(const Genotype& genotype) const {
  const auto name = study_.problem->canonical(genotype).name;
  if (const auto found = table_.find(name)) return *found;
  throw InputError("the table " + table_.facts().at("name").get<std::string>() +
                   " does not have the mechanism " + name + " of the space");
}

void StudyTable::find_combinations() {
  const auto& genes = study_.space.genes();
  const bool all_categorical = std::all_of(genes.begin(), genes.end(), [](const Gene& gene) {
    return gene.categorical() || !gene.varies();
  });
  const auto count = study_.space.num_combinations();
  if (!all_categorical || count > kMostCombinations) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    combinations_.push_back(find(genotype_of(study_.space, i)));
  }
}

std::int64_t StudyTable::mechanism(const Genotype& genotype) const {
  if (combinations_.empty()) return find(genotype);
  return combinations_[combination_of(study_.space, genotype)];
}

}  // namespace nas
