#include "study/stages/audit.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/seed.hpp"
#include "report/text.hpp"
#include "statistics/statistics.hpp"
#include "store/replicates.hpp"
#include "study/session/set_up.hpp"

namespace nas {

namespace {

constexpr std::size_t kTop = 3;

/// Paused training runs in an order that the run's seed alone decides.
std::vector<const Evaluation*> drawn(const RunSummary& run, const Experiment& experiment) {
  std::vector<std::pair<std::uint64_t, const Evaluation*>> order;
  for (const auto& one : run.paused) {
    order.emplace_back(derive_seed(experiment.seed, 0, "audit", one.candidate), &one);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second->id) < std::pair(b.first, b.second->id);
  });
  const auto share = experiment.fidelity->get<double>("audit");
  order.resize(static_cast<std::size_t>(std::ceil(share * static_cast<double>(order.size()))));
  std::vector<const Evaluation*> evaluations;
  for (const auto& one : order) evaluations.push_back(one.second);
  return evaluations;
}

/// Points that a candidate must not be behind: the front, or of one objective the third best, the
/// last one where fewer came to the end.
Points rivals(const RunSummary& run) {
  Points points;
  if (run.several()) {
    for (const auto i : run.front) points.push_back(run.ranking[i].fitness);
  } else {
    points.push_back(run.ranking[std::min(kTop, run.ranking.size()) - 1].fitness);
  }
  return points;
}

bool enters(const Point& point, const Points& rivals) {
  return std::none_of(rivals.begin(), rivals.end(), [&point](const Point& rival) {
    return rival == point || dominates(rival, point);
  });
}

std::string percent(double share) { return fixed_text(100.0 * share, 0) + " %"; }

/// Whether pruning was better than lots: those that came to the end would otherwise be as good.
std::string verdict(std::int64_t entered, std::int64_t of, double by_lot) {
  const auto [low, high] = share_interval(entered, of);
  const auto found = percent(static_cast<double>(entered) / static_cast<double>(of)) + " (" +
                     percent(low) + " to " + percent(high) + ", n = " + std::to_string(of) +
                     ") of those paused there would have entered, by lot " + percent(by_lot);
  if (high < by_lot) return "The first rung was not too early: " + found + ".";
  if (low > by_lot) return "The first rung was too early: " + found + ".";
  return "Whether the first rung was too early is not shown by so few: " + found + ".";
}

}  // namespace

void audit(const StageWork& work) {
  const auto& experiment = work.experiment;
  if (!experiment.fidelity) return;
  const auto record = work.store.meta("audit").value_or(nlohmann::json::object());
  std::set<std::string> ids = record.value("evaluations", std::set<std::string>());
  const bool wanted = experiment.fidelity->get<double>("audit") > 0.0;
  if (!wanted && !record.contains("text")) return;
  const RunSummary run(work.store);
  if (!wanted) {
    if (record.at("paused") == run.paused.size() &&
        record.value("asks", run.num_asked()) == run.num_asked()) {
      return;
    }
    work.store.set_meta("audit", {{"evaluations", ids}});  // it was made beside another result
    work.observer.warned("the search has gone on since its audit, which is therefore not shown");
    return;
  }
  const auto chosen = drawn(run, experiment);
  if (chosen.empty()) return;
  if (run.ranking.empty()) {
    work.observer.warned("no training run has come to its end with which an audit could compare");
    return;
  }
  // First, so that a process that ends in between leaves no training run without an ask.
  // One that keeps no weights: they would take the place of the search's own.
  const auto& problem = work.setup.problem;
  const auto apart = problem->with_training(experiment.training);
  const auto& trainer = apart ? apart : problem;
  std::vector<FurtherTraining> trainings;
  for (const auto* one : chosen) {
    ids.insert(one->id);
    trainings.push_back({trainer, problem->parse(one->candidate), {one->replicate}});
  }
  work.store.set_meta("audit", {{"evaluations", ids}});
  train_further(trainings, work, "audit");

  const auto front = rivals(run);
  const auto ended = std::ssize(run.ranking);
  const auto places = run.several() ? std::ssize(run.front) : std::min<std::ptrdiff_t>(ended, kTop);
  const auto first = run.rungs.front().step;
  std::int64_t entered = 0;
  std::int64_t entered_from_first = 0;
  std::int64_t of_first = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto judgement = work.setup.objectives.judge(pointers(trainings[i].evaluations));
    const bool enters_now = judgement.status == Status::ok && enters(judgement.fitness, front);
    const bool at_first = chosen[i]->curve.back().step == first;
    entered += enters_now ? 1 : 0;
    of_first += at_first ? 1 : 0;
    entered_from_first += enters_now && at_first ? 1 : 0;
  }
  const auto n = std::ssize(chosen);
  const auto [low, high] = share_interval(entered, n);
  auto text = std::to_string(n) + " of " + std::to_string(run.paused.size()) +
              " paused candidates were trained to the end, " + std::to_string(entered) +
              " would have entered " +
              (run.several() ? "the front" : "the best " + std::to_string(kTop)) + ": " +
              percent(static_cast<double>(entered) / static_cast<double>(n)) + " (" + percent(low) +
              " to " + percent(high) + ", Clopper-Pearson, 95 %).";
  if (of_first > 0 && places < ended) {  // else everything that ends is among the best
    const auto by_lot = static_cast<double>(places) / static_cast<double>(ended);
    text += ' ' + verdict(entered_from_first, of_first, by_lot);
  }
  work.store.set_meta("audit", {{"evaluations", ids},
                                {"asks", run.num_asked()},
                                {"paused", run.paused.size()},
                                {"audited", n},
                                {"entered", entered},
                                {"low", low},
                                {"high", high},
                                {"text", text}});
}

}  // namespace nas
