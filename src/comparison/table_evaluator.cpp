#include "comparison/table_evaluator.hpp"

#include <algorithm>
#include <span>

#include "core/error.hpp"
#include "core/stop.hpp"

namespace nas {

TableEvaluator::TableEvaluator(const StudyTable& table, std::uint64_t seed, const Options& options)
    : table_(table),
      replay_(table.table(), table.mode(), seed),
      options_(options),
      known_(static_cast<std::size_t>(table.table().num_mechanisms())) {}

/// Looks up `number` further evaluations of a mechanism. @return whether there was time for all.
bool TableEvaluator::evaluate(std::int64_t mechanism, std::int64_t number) {
  auto& replicates = known_[static_cast<std::size_t>(mechanism)].replicates;
  for (std::int64_t i = 0; i < number; ++i) {
    if (!options_.budget.used_up_by(seconds_).empty()) return false;
    const auto n = static_cast<std::int64_t>(replicates.size());
    const bool mean = table_.mode() == ReplayMode::mean;
    replicates.push_back(mean ? 0 : replay_.replicate(mechanism, n));
    if (!mean && n >= table_.table().num_replicates()) ++recycled_;
    seconds_ += table_.cell(mechanism, replicates.back()).seconds;
    ++evaluated_;
  }
  return true;
}

/// @param first  of the replicates that answer; the later ones do, too.
Answer TableEvaluator::answer(std::int64_t mechanism, std::int64_t first) {
  auto& known = known_[static_cast<std::size_t>(mechanism)];
  const auto replicates =
      std::span<const std::int64_t>(known.replicates).subspan(static_cast<std::size_t>(first));
  Answer answer{.candidate = table_.table().mechanism(mechanism),
                .fitness = {},
                .usable = false,
                .earlier_asks = known.asks++};
  if (replicates.size() == 1) {
    const auto& cell = table_.cell(mechanism, replicates.front());
    answer.fitness = cell.fitness;
    answer.usable = cell.usable;
  } else {
    answer.fitness = table_.fitness(mechanism, replicates);
    answer.usable = std::any_of(replicates.begin(), replicates.end(), [&](std::int64_t replicate) {
      return table_.cell(mechanism, replicate).usable;
    });
  }
  trajectory_.candidates.push_back(static_cast<std::int32_t>(mechanism));
  trajectory_.trained.push_back(static_cast<std::int32_t>(evaluated_));
  trajectory_.seconds.push_back(seconds_);
  trajectory_.fitness.insert(trajectory_.fitness.end(), answer.fitness.begin(),
                             answer.fitness.end());
  return answer;
}

std::vector<Answer> TableEvaluator::ask(const std::vector<Genotype>& batch) {
  if (stop_requested()) throw StopRequested();
  std::vector<Answer> answers;
  if (!spent_.empty()) return answers;
  for (const auto& genotype : batch) {
    const auto mechanism = table_.mechanism(genotype);
    const auto& known = known_[static_cast<std::size_t>(mechanism)].replicates;
    const auto answering = answering_replicates(options_.repeated, options_.replicates,
                                                static_cast<std::int64_t>(known.size()));
    spent_ = options_.budget.exceeded_by(num_asked() + 1, evaluated_ + answering.num_fresh());
    if (!spent_.empty() || !evaluate(mechanism, answering.num_fresh())) break;
    answers.push_back(answer(mechanism, answering.first));
  }
  if (auto used_up = options_.budget.used_up_by(seconds_); !used_up.empty()) {
    spent_ = std::move(used_up);
  }
  ++batches_;
  return answers;
}

std::int64_t TableEvaluator::num_asked() const {
  return static_cast<std::int64_t>(trajectory_.candidates.size());
}

}  // namespace nas
