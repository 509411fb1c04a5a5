#include "search/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/seed.hpp"
#include "search/belief.hpp"

namespace nas {

namespace {

/// How much worse a candidate is, in ranges, each time it is asked for again. Far below what any
/// training can resolve.
constexpr double kCloneStep = 1e-9;

/// Leaves an algorithm in the middle of its evolve().
struct SearchEnd : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "the search has ended"; }
};

/// Several scaled objectives as one.
double decomposed(const std::vector<double>& values, const Decomposition& how) {
  if (how.method != "tchebycheff") {
    const Point ideal(values.size(), 0.0);
    return pagmo::decompose_objectives(values, how.weights, ideal, how.method).front();
  }
  // pagmo takes the distance from the ideal point, here the best that the ranges expect: what is
  // better still would count as so much worse.
  constexpr double kOfWeightZero = 1e-4;  // pagmo's
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double weight = how.weights[i] == 0.0 ? kOfWeightZero : how.weights[i];
    largest = std::max(largest, weight * values[i]);
  }
  return largest;
}

/// Fidelity::epsilon becomes a part of each objective's range.
std::optional<Rungs> make_rungs(const ObjectiveSet& objectives, std::optional<Fidelity> fidelity) {
  if (!fidelity) return std::nullopt;
  for (std::size_t i = 0; i < fidelity->epsilon.size(); ++i) {
    const auto& range = objectives.objectives[i].range.value();
    fidelity->epsilon[i] /= std::abs(range.worst - range.best);
  }
  return Rungs(std::move(*fidelity));
}

}  // namespace

/// What all copies of the problem share.
struct SearchProblem::State {
  const SearchSpace& space;
  const std::shared_ptr<Evaluator>& evaluator;
  const ObjectiveSet& objectives;
  const SearchSettings& settings;
  SearchResult result{};
  /// By candidate, with mean_of_answers; else the archive has the latest answer of each.
  std::map<std::string, Belief> beliefs{};
  std::int64_t since_indicator = 0;
  double best = -std::numeric_limits<double>::infinity();  ///< hypervolume, or minus the best value
  double best_ever = best;      ///< which a later answer to the same candidate may take back
  std::int64_t best_asked = 0;  ///< asks at the latest progress: when best_ever was reached
  TellOrder order = TellOrder::virtual_time;
  /// A candidate that was begun by itself and is not told.
  struct Out {
    Genotype genotype;
    std::size_t rung;  ///< to which; 0 where there are none
  };
  std::map<std::int64_t, Out> out{};  ///< by number
  std::int64_t begun = 0;
  std::map<std::size_t, std::vector<Observation>> observed{};  ///< by rung, the end included
  std::vector<Genotype> came_to_end{};                         ///< of the batch, by rungs
  bool judged = false;  ///< whether anybody's end by rungs is known, and is no failure
  std::optional<Rungs> rungs = make_rungs(objectives, settings.fidelity);

  [[nodiscard]] bool several() const { return objectives.objectives.size() > 1; }

  std::vector<std::vector<double>> ask(const std::vector<Genotype>& batch);
  std::vector<Answer> ask_by_rungs(const std::vector<Genotype>& batch);
  std::int64_t begin(const Genotype& genotype, std::size_t rung = 0, bool anyway = false);
  std::optional<std::int64_t> promote();
  void train_answer();
  std::optional<Told> hear();
  void end_where_settings_say();
  void note(const std::vector<Answer>& answers);
  void indicate();
  [[nodiscard]] double quality() const;
  [[nodiscard]] std::vector<double> seen_by_algorithm(const Answer& answer) const;
  [[noreturn]] void end(std::string why) {
    while (hear()) {  // what is out is told all the same
    }
    train_answer();
    result.ended_by = std::move(why);
    throw SearchEnd();
  }
};

/// Larger is better.
double SearchProblem::State::quality() const {
  const auto front = result.archive.front_points();
  if (front.empty()) return -std::numeric_limits<double>::infinity();
  if (!several()) return -front.front().front();
  return hypervolume(front, Point(objectives.objectives.size(), kReferencePoint));
}

/// Enters answers into the archive.
void SearchProblem::State::note(const std::vector<Answer>& answers) {
  bool changed = false;
  for (const auto& answer : answers) {
    if (answer.status == Status::paused) continue;  // it has not shown what it can do
    if (answer.status != Status::ok) {
      // A later replicate that failed takes back what the earlier ones promised.
      if (!settings.mean_of_answers) changed |= result.archive.erase(answer.candidate);
      continue;
    }
    auto point = objectives.scaled(answer.fitness);
    if (settings.mean_of_answers) {
      auto& belief = beliefs[answer.candidate];
      belief.add(point, true);
      point = belief.point;
    }
    changed |= result.archive.insert(answer.candidate, point);
  }
  const auto asked = evaluator->num_asked();
  if (changed) {
    best = quality();
    // Before anything lies within the ranges, all that enters the front may be a step towards them.
    if (best > best_ever || (several() && best_ever <= 0.0)) best_asked = asked;
    best_ever = std::max(best_ever, best);
  }
  since_indicator += static_cast<std::int64_t>(answers.size());
  if (since_indicator >= settings.indicator_interval) indicate();
}

/// Reports how far the search is, unless that is known.
void SearchProblem::State::indicate() {
  if (!settings.on_indicator || since_indicator == 0 || result.archive.size() == 0) return;
  since_indicator = 0;
  const auto& only = objectives.objectives.front();
  double value = best;
  if (!several()) {  // back from the scale to the objective's own unit and sense
    value = only.range->best + (only.range->worst - only.range->best) * -best;
  }
  settings.on_indicator({.asked = evaluator->num_asked(),
                         .batch = evaluator->num_batches() - 1,
                         .evaluated = evaluator->num_evaluated(),
                         .front = static_cast<std::int64_t>(result.archive.front_size()),
                         .value = value});
}

/// Asks the evaluator, and ends the search where its settings say so.
std::vector<std::vector<double>> SearchProblem::State::ask(const std::vector<Genotype>& batch) {
  const auto answers = rungs ? ask_by_rungs(batch) : evaluator->ask(batch);
  if (!rungs) note(answers);
  end_where_settings_say();
  std::vector<std::vector<double>> fitness;
  for (const auto& answer : answers) fitness.push_back(seen_by_algorithm(answer));
  return fitness;
}

/// Trains a batch to the first rung, and where batches are halved its best further, rung by rung.
/// @return the answers at the first rung.
std::vector<Answer> SearchProblem::State::ask_by_rungs(const std::vector<Genotype>& batch) {
  std::vector<std::int64_t> numbers;
  const bool halved = halves_batches(rungs->fidelity().promote);
  if (halved) rungs->begin_batch(batch.size());
  came_to_end.clear();
  for (const auto& genotype : batch) numbers.push_back(begin(genotype));
  std::map<std::int64_t, Answer> told;
  while (auto next = hear()) told.emplace(next->begun, std::move(next->answer));
  std::vector<Answer> answers;
  for (const auto number : numbers) answers.push_back(told.at(number));
  if (!halved) return answers;
  do {
    end_where_settings_say();
    while (promote()) {
    }
    told.clear();
    while (auto next = hear()) told.emplace(next->begun, std::move(next->answer));
  } while (!told.empty());
  if (rungs->fidelity().raced && !came_to_end.empty()) note(evaluator->ask(came_to_end));
  return answers;
}

/// @param anyway  whatever the budget says.
/// @return the number of the ask.
std::int64_t SearchProblem::State::begin(const Genotype& genotype, std::size_t rung, bool anyway) {
  if (!evaluator->begin(genotype, rungs ? rungs->until(rung) : 0, anyway)) {
    end(evaluator->spent());
  }
  out.emplace(begun, Out{.genotype = genotype, .rung = rung});
  return begun++;
}

/// Trains a promoted candidate further. @return the number of the ask; nothing: none is promoted.
std::optional<std::int64_t> SearchProblem::State::promote() {
  if (!rungs) return std::nullopt;
  const auto promoted = rungs->promote();
  if (!promoted) return std::nullopt;
  return begin(promoted->genotype, promoted->rung);
}

/// Where no candidate was trained to the end (pasha, few candidates): trains the best to the end.
void SearchProblem::State::train_answer() {
  if (!rungs || judged) return;
  while (result.archive.size() == 0) {
    const auto answers = rungs->answer();
    if (answers.empty()) return;
    for (const auto& one : answers) begin(one.genotype, one.rung, /*anyway=*/true);
    while (hear()) {
    }
  }
}

/// Waits for an answer to what has begun.
std::optional<Told> SearchProblem::State::hear() {
  auto told = evaluator->next(order);
  if (!told) return told;
  const auto& answer = told->answer;
  note({answer});
  const auto [genotype, rung] = out.extract(told->begun).mapped();
  const bool ended = rungs && answer.status == Status::ok && rung == rungs->end();
  judged |= ended || (rungs && answer.status == Status::rejected && rung == rungs->end());
  if (ended && rungs->fidelity().raced) came_to_end.push_back(genotype);
  if (ended || answer.status == Status::paused) {
    if (rung > 0) {
      observed[rung].emplace_back(space.encode(genotype, settings.encoding),
                                  seen_by_algorithm(answer));
    }
    rungs->reach(rung, answer.candidate, genotype,
                 {.ask = told->begun,
                  .point = objectives.scaled(answer.fitness),
                  .feasible = answer.feasible});
  }
  return told;
}

void SearchProblem::State::end_where_settings_say() {
  if (const auto spent = evaluator->spent(); !spent.empty()) end(spent);
  if (settings.target && !several() && result.archive.size() > 0) {
    const auto& only = objectives.objectives.front();
    if (-best <= only.scaled(only.minimised(*settings.target))) {
      end("target " + shortest(*settings.target) + " reached");
    }
  }
  if (settings.stagnation > 0 && evaluator->num_asked() - best_asked >= settings.stagnation) {
    end("no progress in " + std::to_string(settings.stagnation) + " asks");
  }
}

std::vector<double> SearchProblem::State::seen_by_algorithm(const Answer& answer) const {
  if (!several()) return answer.fitness;
  auto values = objectives.scaled(answer.fitness);
  if (settings.decomposition) return {decomposed(values, *settings.decomposition)};
  for (auto& value : values) value += kCloneStep * static_cast<double>(answer.earlier_asks);
  return values;
}

std::vector<double> SearchProblem::fitness(const std::vector<double>& decision_vector) const {
  return state_->ask({state_->space.decode(decision_vector, state_->settings.encoding)}).front();
}

std::vector<double> SearchProblem::batch_fitness(
    const std::vector<double>& decision_vectors) const {
  const auto length = static_cast<std::ptrdiff_t>(get_bounds().first.size());
  std::vector<Genotype> batch;
  for (auto begin = decision_vectors.begin(); begin != decision_vectors.end(); begin += length) {
    batch.push_back(state_->space.decode({begin, begin + length}, state_->settings.encoding));
  }
  std::vector<double> fitness;
  for (const auto& values : state_->ask(batch)) {
    fitness.insert(fitness.end(), values.begin(), values.end());
  }
  return fitness;
}

std::int64_t SearchProblem::begin(const std::vector<double>& decision_vector,
                                  TellOrder order) const {
  state_->order = order;
  return state_->begin(state_->space.decode(decision_vector, state_->settings.encoding));
}

std::optional<std::int64_t> SearchProblem::promote(TellOrder order) const {
  state_->order = order;
  return state_->promote();
}

std::pair<std::int64_t, std::vector<double>> SearchProblem::next() const {
  const auto told = state_->hear().value();
  state_->end_where_settings_say();
  return {told.begun, state_->seen_by_algorithm(told.answer)};
}

std::vector<SearchProblem::Observation> SearchProblem::at_highest_rung(std::size_t least) const {
  const auto& rungs = state_->observed;
  const auto found = std::find_if(rungs.rbegin(), rungs.rend(), [least](const auto& rung) {
    return rung.second.size() >= least;
  });
  return found == rungs.rend() ? std::vector<Observation>() : found->second;
}

std::pair<std::vector<double>, std::vector<double>> SearchProblem::get_bounds() const {
  // pagmo asks a default-constructed problem for its bounds before the archive fills it.
  if (!state_) return {{0.0}, {1.0}};
  return state_->space.bounds(state_->settings.encoding);
}

std::size_t SearchProblem::get_nobj() const {
  return state_ && !state_->settings.decomposition ? state_->objectives.objectives.size() : 1;
}

std::size_t SearchProblem::get_nix() const {
  return state_ ? state_->space.num_integers(state_->settings.encoding) : 0;
}

std::vector<double> SearchProblem::evaluated(const std::vector<double>& decision_vector) const {
  if (!state_) return decision_vector;
  const auto encoding = state_->settings.encoding;
  return state_->space.encode(state_->space.decode(decision_vector, encoding), encoding);
}

std::vector<bool> SearchProblem::active(const std::vector<double>& decision_vector) const {
  std::vector<bool> all(decision_vector.size(), true);
  if (!state_ || !state_->settings.conditions) return all;
  const auto encoding = state_->settings.encoding;
  const auto names = state_->settings.conditions(state_->space.decode(decision_vector, encoding));
  const std::set<std::string> active(names.begin(), names.end());
  // As a decision vector is laid out: reals first.
  std::vector<bool> found;
  for (const bool categorical : {false, true}) {
    for (const auto& gene : state_->space.genes()) {
      if (gene.categorical() != categorical || !gene.varies()) continue;
      const bool scores = categorical && encoding == Encoding::scores;
      found.insert(found.end(), scores ? gene.options.size() : 1, active.contains(gene.name));
    }
  }
  return found;
}

SearchResult run_search(const SearchSpace& space, const std::shared_ptr<Evaluator>& evaluator,
                        const ObjectiveSet& objectives, const pagmo::algorithm& algorithm,
                        const SearchSettings& settings) {
  const auto state = std::make_shared<SearchProblem::State>(SearchProblem::State{
      .space = space, .evaluator = evaluator, .objectives = objectives, .settings = settings});
  const SearchProblem asker(state);
  RandomEngine random(derive_seed(settings.seed, 0, "initial population", 0));
  RandomEngine placement(derive_seed(settings.seed, 0, "initial decision vectors", 0));
  const auto size = static_cast<std::size_t>(settings.population);
  std::vector<std::vector<double>> initial;
  std::vector<double> joined;
  for (std::size_t i = 0; i < size; ++i) {
    const auto genotype = i < settings.initial.size() ? settings.initial[i] : space.draw(random);
    initial.push_back(space.encode(genotype, settings.encoding, &placement));
    joined.insert(joined.end(), initial.back().begin(), initial.back().end());
  }
  try {
    const auto fitness = size == 0 ? joined : asker.batch_fitness(joined);
    pagmo::population population(pagmo::problem(asker), 0, settings.seed);
    const auto width = static_cast<std::ptrdiff_t>(asker.get_nobj());
    for (std::size_t i = 0; i < size; ++i) {
      const auto begin = fitness.begin() + static_cast<std::ptrdiff_t>(i) * width;
      population.push_back(initial[i], {begin, begin + width});
    }
    const auto last = algorithm.evolve(population);
    while (state->hear()) {  // what an algorithm has left out
    }
    state->train_answer();
    state->result.ended_by = "the algorithm's end";
    if (!settings.decomposition) state->result.last_population = last.get_f();
  } catch (const SearchEnd&) {
    // ended_by says why; what was found is in the archive
  }
  state->indicate();
  return std::move(state->result);
}

}  // namespace nas
