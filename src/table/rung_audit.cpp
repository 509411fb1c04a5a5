#include "table/rung_audit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/seed.hpp"
#include "core/stop.hpp"
#include "search/objective.hpp"
#include "statistics/agreement.hpp"
#include "table/answer.hpp"

namespace nas {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kTop = 16;
constexpr std::array<std::int64_t, 5> kBudgets{10, 20, 40, 60, 93};

using Steps = std::vector<std::int64_t>;
/// By mechanism; empty where the training run did not come so far.
using Outcomes = Points;

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return kUndefined;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// An objective of one training run.
class Quantity {
 public:
  explicit Quantity(const std::string& key)
      : key_(key), objective_(objectives().at(key).make(defaults(key))) {
    if (objective_.trained || objective_.analytic) return;
    throw InputError("--objectives " + key + ", must be one that a single training run has");
  }

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] bool changes_in_training() const { return static_cast<bool>(objective_.trained); }

  /// In minimisation form.
  [[nodiscard]] double value(const Evaluation& evaluation) const {
    const double sign = objective_.maximise ? -1.0 : 1.0;
    if (changes_in_training()) return sign * objective_.trained(evaluation);
    const auto found = evaluation.values.find(key_);
    if (found != evaluation.values.end()) return sign * found->second;
    std::vector<std::string> known;
    for (const auto& item : evaluation.values) known.push_back(item.first);
    throw InputError("--objectives " + key_ +
                     ": the table does not have it, recorded: " + join(known));
  }

 private:
  static Parameters defaults(const std::string& key) {
    return Parameters(objectives().at(key).description.settings);
  }

  std::string key_;
  Objective objective_;
};

/// What all training runs of a table had come to at each of its steps.
class Courses {
 public:
  Courses(const Table& table, const std::vector<Quantity>& quantities)
      : steps_(table.steps()),
        outcomes_(steps_.size(), std::vector<Outcomes>(replicates(table), mechanisms(table))) {
    const double bytes = table.facts().value("bytes_per_token", 0.0);
    for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
      for (std::int64_t r = 0; r < table.num_replicates(); ++r) {
        const auto recorded = table.evaluation(i, r);
        for (std::size_t s = 0; s < steps_.size(); ++s) {
          outcomes_[s][static_cast<std::size_t>(r)][static_cast<std::size_t>(i)] =
              outcome(recorded, steps_[s], bytes, quantities);
        }
      }
    }
  }

  [[nodiscard]] const Steps& steps() const { return steps_; }
  /// With the seeds of one replicate.
  [[nodiscard]] const Outcomes& at(std::int64_t step, std::size_t replicate) const {
    const auto found = std::lower_bound(steps_.begin(), steps_.end(), step);
    return outcomes_[static_cast<std::size_t>(found - steps_.begin())][replicate];
  }
  [[nodiscard]] const Outcomes& end(std::size_t replicate) const {
    return outcomes_.back()[replicate];
  }
  [[nodiscard]] std::size_t num_replicates() const { return outcomes_.back().size(); }

  /// The means over all replicates but one; none of what finished with none of them.
  [[nodiscard]] Outcomes fresh(std::size_t replicate) const {
    Outcomes means(end(0).size());
    for (std::size_t i = 0; i < means.size(); ++i) {
      double n = 0.0;
      for (std::size_t r = 0; r < num_replicates(); ++r) {
        const auto& point = end(r)[i];
        if (r == replicate || point.empty()) continue;
        means[i].resize(point.size());
        for (std::size_t m = 0; m < point.size(); ++m) means[i][m] += point[m];
        n += 1.0;
      }
      for (auto& value : means[i]) value /= n;
    }
    return means;
  }

 private:
  static std::size_t replicates(const Table& table) {
    return static_cast<std::size_t>(table.num_replicates());
  }
  static Outcomes mechanisms(const Table& table) {
    return Outcomes(static_cast<std::size_t>(table.num_mechanisms()));
  }

  static Point outcome(const Evaluation& recorded, std::int64_t step, double bytes_per_token,
                       const std::vector<Quantity>& quantities) {
    const auto ended = ended_at(recorded, step, bytes_per_token);
    if (ended.status != Status::ok || ended.curve.back().step != step) return {};
    Point point;
    for (const auto& quantity : quantities) point.push_back(quantity.value(ended));
    const bool finite =
        std::all_of(point.begin(), point.end(), [](double value) { return std::isfinite(value); });
    return finite ? point : Point{};
  }

  Steps steps_;
  std::vector<std::vector<Outcomes>> outcomes_;  ///< by step and replicate
};

/// Mechanisms that have an outcome, the best first.
std::vector<std::size_t> ranked(const Outcomes& outcomes, Spread spread) {
  std::vector<Reached> reached;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].empty()) continue;
    reached.push_back({.ask = static_cast<std::int64_t>(i), .point = outcomes[i]});
  }
  std::vector<std::size_t> mechanisms;
  for (const auto i : promotion_order(reached, spread)) {
    mechanisms.push_back(static_cast<std::size_t>(reached[i].ask));
  }
  return mechanisms;
}

/// Flags of the first ones of a ranking.
std::vector<char> best_of(const std::vector<std::size_t>& ranking, std::size_t count,
                          std::size_t mechanisms) {
  std::vector<char> best(mechanisms, 0);
  for (std::size_t i = 0; i < std::min(count, ranking.size()); ++i) best[ranking[i]] = 1;
  return best;
}

/// How alike mechanisms are ordered by two sets of outcomes, of which both have one.
class Alike {
 public:
  Alike(const Outcomes& a, const Outcomes& b, Spread spread) : a_(a), b_(b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!a[i].empty() && !b[i].empty()) continue;
      a_[i].clear();
      b_[i].clear();
    }
    const auto ranking_a = ranked(a_, spread);
    const auto best_a = best_of(ranking_a, kTop, a.size());
    const auto best_b = best_of(ranked(b_, spread), kTop, a.size());
    double both = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) both += best_a[i] != 0 && best_b[i] != 0 ? 1.0 : 0.0;
    pairs_ = std::ssize(ranking_a);
    overlap_ = both / static_cast<double>(std::min(kTop, ranking_a.size()));
  }

  [[nodiscard]] double correlation(std::size_t objective) const {
    std::vector<double> of_a;
    std::vector<double> of_b;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      if (a_[i].empty()) continue;
      of_a.push_back(a_[i][objective]);
      of_b.push_back(b_[i][objective]);
    }
    return rank_correlation(of_a, of_b);
  }
  [[nodiscard]] double overlap() const { return overlap_; }
  [[nodiscard]] std::int64_t pairs() const { return pairs_; }

 private:
  Outcomes a_, b_;
  double overlap_ = 0.0;
  std::int64_t pairs_ = 0;
};

/// Means over several comparisons: an agreement without its step.
RungAudit::Agreement agreement(const std::vector<Alike>& several, std::size_t objective) {
  std::vector<double> correlations;
  std::vector<double> overlaps;
  auto pairs = std::numeric_limits<std::int64_t>::max();
  for (const auto& alike : several) {
    correlations.push_back(alike.correlation(objective));
    overlaps.push_back(alike.overlap());
    pairs = std::min(pairs, alike.pairs());
  }
  RungAudit::Agreement agreement;
  agreement.correlation = mean_of(correlations);
  agreement.overlap = mean_of(overlaps);
  std::tie(agreement.low, agreement.high) = rank_correlation_interval(agreement.correlation, pairs);
  return agreement;
}

/// See RungAudit::Agreement::noise.
double noise_at(const Courses& courses, std::int64_t step, std::size_t objective) {
  std::vector<double> distances;
  for (std::size_t a = 0; a < courses.num_replicates(); ++a) {
    for (std::size_t b = a + 1; b < courses.num_replicates(); ++b) {
      const auto& of_a = courses.at(step, a);
      const auto& of_b = courses.at(step, b);
      std::vector<double> differences;
      for (std::size_t i = 0; i < of_a.size(); ++i) {
        if (of_a[i].empty() || of_b[i].empty()) continue;
        differences.push_back(of_a[i][objective] - of_b[i][objective]);
      }
      if (differences.empty()) continue;
      const double shift = median(differences);  // what the seeds do to all alike
      for (const double difference : differences) distances.push_back(std::abs(difference - shift));
    }
  }
  constexpr double kOfNormal = 1.4826;
  return distances.empty() ? kUndefined : kOfNormal * median(distances);
}

void find_agreement(const Courses& courses, const std::vector<Quantity>& quantities,
                    RungAudit& audit) {
  const auto spread = audit.options.spread;
  const auto add = [&](const std::vector<Alike>& several, std::int64_t step,
                       std::vector<RungAudit::Agreement>& agreements) {
    for (std::size_t m = 0; m < quantities.size(); ++m) {
      if (!quantities[m].changes_in_training()) continue;
      agreements.push_back(agreement(several, m));
      agreements.back().objective = quantities[m].key();
      agreements.back().step = step;
      agreements.back().noise = noise_at(courses, step, m);
    }
  };
  for (const auto step : courses.steps()) {
    std::vector<Alike> with_the_end;
    for (std::size_t r = 0; r < courses.num_replicates(); ++r) {
      with_the_end.emplace_back(courses.at(step, r), courses.end(r), spread);
    }
    add(with_the_end, step, audit.agreement);
  }
  std::vector<Alike> pairs;
  for (std::size_t a = 0; a < courses.num_replicates(); ++a) {
    for (std::size_t b = a + 1; b < courses.num_replicates(); ++b) {
      pairs.emplace_back(courses.end(a), courses.end(b), spread);
    }
  }
  add(pairs, courses.steps().back(), audit.between_seeds);
  const auto found = std::find_if(
      audit.agreement.begin(), audit.agreement.end(),
      [&audit](const auto& rung) { return rung.overlap >= audit.between_seeds.front().overlap; });
  if (found != audit.agreement.end() && found->step != courses.steps().back()) {
    audit.first_trusted_step = found->step;
  }
}

/// What mechanisms are worth at the end.
class Worth {
 public:
  explicit Worth(Outcomes outcomes) : outcomes_(std::move(outcomes)) {
    for (const auto& point : outcomes_) {
      if (point.empty()) continue;
      if (worst_.empty()) worst_ = point;
      for (std::size_t m = 0; m < point.size(); ++m) worst_[m] = std::max(worst_[m], point[m]);
      all_.push_back(point);
    }
    if (all_.empty()) return;
    for (const auto i : non_dominated(all_)) front_.push_back(all_[i]);
    low_ = high_ = front_.front();
    for (const auto& point : front_) {
      for (std::size_t m = 0; m < point.size(); ++m) {
        low_[m] = std::min(low_[m], point[m]);
        high_[m] = std::max(high_[m], point[m]);
      }
    }
    best_ = low_.size() == 1 ? low_.front() : volume(front_);
  }

  /// Of mechanisms, see RungAudit::Replayed::regret; of one that never finished, the worst.
  [[nodiscard]] double regret(const std::vector<std::size_t>& mechanisms) const {
    if (mechanisms.empty() || all_.empty()) return kUndefined;
    Points points;
    for (const auto i : mechanisms) {
      points.push_back(outcomes_[i].empty() ? worst_ : outcomes_[i]);
    }
    return low_.size() == 1 ? points.front().front() - best_ : 1.0 - volume(points) / best_;
  }

  [[nodiscard]] bool on_front(std::size_t mechanism) const {
    return std::find(front_.begin(), front_.end(), outcomes_[mechanism]) != front_.end();
  }

 private:
  [[nodiscard]] double volume(Points points) const {
    for (auto& point : points) {
      for (std::size_t m = 0; m < point.size(); ++m) {
        const double range = high_[m] - low_[m];
        point[m] = (point[m] - low_[m]) / (range > 0.0 ? range : 1.0);
      }
    }
    return hypervolume(points, Point(low_.size(), 1.1));
  }

  Outcomes outcomes_;
  Points all_{}, front_{};
  Point worst_{}, low_{}, high_{};
  double best_ = kUndefined;
};

/// What searches that see one replicate are judged by.
struct Judge {
  Judge(const Courses& courses, std::size_t replicate, Spread spread)
      : own(courses.end(replicate)), fresh(courses.fresh(replicate)) {
    const auto mechanisms = courses.end(replicate).size();
    const auto ranking = ranked(courses.end(replicate), spread);
    top_3 = best_of(ranking, 3, mechanisms);
    top_16 = best_of(ranking, kTop, mechanisms);
    front.resize(mechanisms);
    for (const auto i : ranking) front[i] = own.on_front(i) ? 1 : 0;
  }

  Worth own, fresh;
  std::vector<char> top_3, top_16, front;  ///< flags by mechanism
};

/// How far a search has come.
struct State {
  std::vector<std::size_t> started{};  ///< mechanisms, in the order of their asks
  std::vector<Reached> finished{};     ///< `ask` is the mechanism
  std::int64_t paid = 0;               ///< steps
};

/// A search of one replicate of a table, in one order.
struct Search {
  const Courses& courses;
  const RungAudit& audit;
  std::size_t replicate;
  const std::vector<std::size_t>& order;

  [[nodiscard]] const Steps& rungs() const { return audit.options.rungs; }
  [[nodiscard]] std::int64_t full() const { return rungs().back(); }
  [[nodiscard]] std::int64_t cost(std::size_t rung) const {
    return rungs()[rung] - (rung == 0 ? 0 : rungs()[rung - 1]);
  }

  /// Trains a mechanism from the rung before to this one, where it may arrive.
  void train(std::size_t mechanism, std::size_t rung, State& state,
             std::vector<Reached>& reached) const {
    state.paid += cost(rung);
    if (rung == 0) state.started.push_back(mechanism);
    const auto& point = courses.at(rungs()[rung], replicate)[mechanism];
    if (point.empty()) return;
    reached.push_back({.ask = static_cast<std::int64_t>(mechanism), .point = point});
  }

  [[nodiscard]] State full_length(std::int64_t budget) const {
    State state;
    for (const auto mechanism : order) {
      if (state.paid + full() > budget) break;
      state.started.push_back(mechanism);
      state.paid += full();
      const auto& point = courses.end(replicate)[mechanism];
      if (point.empty()) continue;
      state.finished.push_back({.ask = static_cast<std::int64_t>(mechanism), .point = point});
    }
    return state;
  }

  /// Steps of a bracket that begins with n candidates, none of which fails.
  [[nodiscard]] std::int64_t bracket_cost(std::size_t n) const {
    std::int64_t steps = 0;
    for (std::size_t k = 0; k < rungs().size(); ++k) {
      if (k > 0) n = num_halved(n, audit.eta[k - 1]);
      steps += static_cast<std::int64_t>(n) * cost(k);
    }
    return steps;
  }

  [[nodiscard]] State successive_halving(std::int64_t budget) const {
    std::size_t n = 0;
    while (n < order.size() && bracket_cost(n + 1) <= budget) ++n;
    State state;
    std::vector<Reached> reached;
    for (std::size_t i = 0; i < n; ++i) train(order[i], 0, state, reached);
    for (std::size_t k = 1; k < rungs().size(); ++k) {
      auto ranking = promotion_order(reached, audit.options.spread);
      ranking.resize(num_halved(reached.size(), audit.eta[k - 1]));
      const auto before = std::exchange(reached, {});
      for (const auto i : ranking) {
        train(static_cast<std::size_t>(before[i].ask), k, state, reached);
      }
    }
    state.finished = std::move(reached);
    return state;
  }

  /// @param budgets  ascending.   @return the state when each of them was used up.
  [[nodiscard]] std::vector<State> asha(const Steps& budgets) const {
    std::vector<State> states;
    State state;
    std::vector<std::vector<Reached>> reached(rungs().size());
    std::vector<char> changed(rungs().size(), 0);
    while (states.size() < budgets.size()) {
      std::size_t rung = rungs().size() - 1;
      std::optional<std::size_t> next;
      for (; rung > 0; --rung) {
        if (!changed[rung - 1]) continue;  // nothing has arrived since the last look
        next = next_promoted(reached[rung - 1], audit.eta[rung - 1], audit.options.spread);
        if (next) break;
        changed[rung - 1] = 0;
      }
      const bool ends = !next && state.started.size() == order.size();
      while (states.size() < budgets.size() &&
             (ends || state.paid + cost(rung) > budgets[states.size()])) {
        states.push_back(state);
        states.back().finished = reached.back();
      }
      if (ends) break;
      auto mechanism = next ? std::size_t{0} : order[state.started.size()];
      if (next) {
        auto& goes_on = reached[rung - 1][*next];
        goes_on.promoted = true;
        mechanism = static_cast<std::size_t>(goes_on.ask);
      }
      train(mechanism, rung, state, reached[rung]);
      changed[rung] = 1;
    }
    return states;
  }
};

/// Adds up the searches of one method that end with one budget.
class Tally {
 public:
  void add(const State& state, const Judge& judge, const RungAudit& audit) {
    std::vector<char> finished(judge.front.size(), 0);
    for (const auto& one : state.finished) finished[static_cast<std::size_t>(one.ask)] = 1;
    for (const auto mechanism : state.started) {
      const auto count = [&](const std::vector<char>& among, RungAudit::Pruned& pruned) {
        if (among[mechanism] == 0) return;
        ++pruned.of;
        if (finished[mechanism] == 0) ++pruned.count;
      };
      count(judge.top_3, sums_.top_3);
      count(judge.top_16, sums_.top_16);
      count(judge.front, sums_.front);
    }
    Points points;
    for (const auto& one : state.finished) points.push_back(one.point);
    std::vector<std::size_t> returned;
    for (const auto i : non_dominated(points)) {
      returned.push_back(static_cast<std::size_t>(state.finished[i].ask));
    }
    sums_.started += static_cast<double>(state.started.size());
    sums_.finished += static_cast<double>(state.finished.size());
    const auto whole = static_cast<double>(std::ssize(state.started) * audit.options.rungs.back());
    sums_.saved += whole > 0.0 ? 1.0 - static_cast<double>(state.paid) / whole : 0.0;
    regrets_.push_back(judge.own.regret(returned));
    fresh_.push_back(judge.fresh.regret(returned));
  }

  [[nodiscard]] RungAudit::Replayed result(std::string method, std::int64_t budget) const {
    auto replayed = sums_;
    const auto n = static_cast<double>(regrets_.size());
    replayed.method = std::move(method);
    replayed.budget = budget;
    replayed.started /= n;
    replayed.finished /= n;
    replayed.saved /= n;
    replayed.regret = estimate(regrets_);
    replayed.fresh_regret = estimate(fresh_);
    return replayed;
  }

 private:
  RungAudit::Replayed sums_{};
  std::vector<double> regrets_{}, fresh_{};
};

void replay(const Courses& courses, RungAudit& audit) {
  const auto full = audit.options.rungs.back();
  std::vector<std::int64_t> trainings;
  for (const auto budget : kBudgets) {
    if (budget <= audit.mechanisms) trainings.push_back(budget);
  }
  if (trainings.empty()) trainings.push_back(audit.mechanisms);
  Steps budgets;
  for (const auto budget : trainings) budgets.push_back(budget * full);

  std::vector<Judge> judges;
  for (std::size_t r = 0; r < courses.num_replicates(); ++r) {
    judges.emplace_back(courses, r, audit.options.spread);
  }
  std::vector<Tally> whole(budgets.size());
  std::vector<Tally> halving(budgets.size());
  std::vector<Tally> asha(budgets.size());
  std::vector<std::size_t> order(static_cast<std::size_t>(audit.mechanisms));
  for (std::int64_t search = 0; search < audit.options.searches; ++search) {
    if (stop_requested()) throw StopRequested();
    std::iota(order.begin(), order.end(), std::size_t{0});
    RandomEngine random(derive_seed(0, 0, "rung audit", search));
    for (auto left = std::ssize(order); left > 1; --left) {
      std::swap(order[static_cast<std::size_t>(left - 1)],
                order[static_cast<std::size_t>(random.below(left))]);
    }
    const auto replicate = static_cast<std::size_t>(search % audit.replicates);
    const Search one{.courses = courses, .audit = audit, .replicate = replicate, .order = order};
    const auto states = one.asha(budgets);
    for (std::size_t b = 0; b < budgets.size(); ++b) {
      whole[b].add(one.full_length(budgets[b]), judges[replicate], audit);
      halving[b].add(one.successive_halving(budgets[b]), judges[replicate], audit);
      asha[b].add(states[b], judges[replicate], audit);
    }
  }
  for (std::size_t b = 0; b < budgets.size(); ++b) {
    audit.replayed.push_back(whole[b].result("full length", trainings[b]));
    audit.replayed.push_back(halving[b].result("successive halving", trainings[b]));
    audit.replayed.push_back(asha[b].result("asha", trainings[b]));
  }
}

std::string list(const Steps& steps) {
  std::vector<std::string> texts;
  for (const auto step : steps) texts.push_back(std::to_string(step));
  return join(texts);
}

void check(const Table& table, const RungAudit::Options& options) {
  const auto& steps = table.steps();
  if (steps.empty()) throw InputError("none of the table's training runs has a curve");
  const auto& rungs = options.rungs;
  const bool ascending = std::is_sorted(rungs.begin(), rungs.end(), std::less_equal<>());
  if (rungs.size() < 2 || !ascending || rungs.back() != steps.back() ||
      !std::includes(steps.begin(), steps.end(), rungs.begin(), rungs.end())) {
    throw InputError("--rungs " + list(rungs) + ", must be two or more of " + list(steps) +
                     ", ascending, the last one " + std::to_string(steps.back()));
  }
  if (options.eta && !(*options.eta > 1.0 && std::isfinite(*options.eta))) {
    throw InputError("--eta " + shortest(*options.eta) + ", must be finite and greater than 1");
  }
  if (options.searches < 1) {
    throw InputError("--seeds " + std::to_string(options.searches) + ", must be at least 1");
  }
  if (options.objectives.empty())
    throw InputError("--objectives: none is given, must be perplexity, flops, ...");
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    for (std::int64_t r = 0; r < table.num_replicates(); ++r) {
      if (table.has(i, r)) continue;
      throw InputError("the table has no replicate " + std::to_string(r) + " of " +
                       table.mechanism(i) + ", must have every cell");
    }
  }
}

std::string percent(double share) {
  return std::isnan(share) ? "-" : shortest(std::round(1000.0 * share) / 10.0) + " %";
}

std::string two_digits(double value) {
  return std::isnan(value) ? "-" : shortest(std::round(100.0 * value) / 100.0);
}

}  // namespace

double RungAudit::Pruned::share() const {
  return of == 0 ? kUndefined : static_cast<double>(count) / static_cast<double>(of);
}

std::string RungAudit::verdict() const {
  const auto first = std::find_if(agreement.begin(), agreement.end(), [this](const auto& rung) {
    return rung.step == options.rungs.front();
  });
  std::string text;
  if (replicates < 2) {
    text = "One replicate does not tell how much of a rank is noise of the seed.";
  } else if (mechanisms < 4 * static_cast<std::int64_t>(kTop)) {
    text = std::to_string(mechanisms) +
           " mechanisms do not tell whether the first rung is too early, " +
           std::to_string(4 * kTop) + " would: it goes by the best " + std::to_string(kTop) + ".";
  } else {
    const bool trusted = first->overlap >= between_seeds.front().overlap;
    text = std::string("The first rung is ") + (trusted ? "not " : "") + "too early: step " +
           std::to_string(first->step) + " has " + percent(first->overlap) +
           " of the best 16 of the end among its own, two seeds have " +
           percent(between_seeds.front().overlap) + " in common at the end";
    if (!trusted && first_trusted_step) {
      text += "; step " + std::to_string(*first_trusted_step) + " is the first with as many";
    }
    text += ".";
  }
  const auto at = [this](std::string_view method) -> const Replayed& {
    const auto last = replayed.back().budget;
    return *std::find_if(replayed.begin(), replayed.end(), [&](const auto& one) {
      return one.method == method && one.budget == last;
    });
  };
  const auto& asha = at("asha");
  const auto& whole = at("full length");
  const bool several = options.objectives.size() > 1;
  text += " For the steps of " + std::to_string(asha.budget) + " whole training runs ASHA starts " +
          shortest(std::round(asha.started)) + " candidates instead of " +
          shortest(std::round(whole.started)) + ", prunes " +
          percent((several ? asha.front : asha.top_16).share()) + " of the " +
          (several ? "front's members" : "best 16") + " that it starts, and " +
          (several ? "misses " + percent(asha.regret.mean) + " of the hypervolume instead of " +
                         percent(whole.regret.mean)
                   : "ends " + two_digits(asha.regret.mean) + " beyond the best instead of " +
                         two_digits(whole.regret.mean)) +
          ".";
  return text;
}

RungAudit audit_rungs(const Table& table, const RungAudit::Options& options) {
  check(table, options);
  std::vector<Quantity> quantities;
  for (const auto& key : options.objectives) quantities.emplace_back(key);
  if (std::none_of(quantities.begin(), quantities.end(),
                   [](const Quantity& one) { return one.changes_in_training(); })) {
    throw InputError("--objectives " + join(options.objectives) +
                     ": all are known before training, must have one that is not");
  }
  RungAudit audit{.table = table.facts().at("name"),
                  .mechanisms = table.num_mechanisms(),
                  .replicates = table.num_replicates(),
                  .options = options,
                  .eta = {},
                  .agreement = {},
                  .between_seeds = {},
                  .replayed = {}};
  for (std::size_t k = 0; k + 1 < options.rungs.size(); ++k) {
    const double ratio =
        static_cast<double>(options.rungs[k + 1]) / static_cast<double>(options.rungs[k]);
    audit.eta.push_back(options.eta.value_or(ratio));
  }
  const Courses courses(table, quantities);
  find_agreement(courses, quantities, audit);
  replay(courses, audit);
  return audit;
}

}  // namespace nas
