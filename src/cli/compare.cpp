#include "cli/compare.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include "cli/continuing.hpp"
#include "cli/feasibility.hpp"
#include "cli/ranges.hpp"
#include "cli/rehearsal.hpp"
#include "comparison/outcome.hpp"
#include "comparison/table_evaluator.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/thread_clock.hpp"
#include "core/version.hpp"
#include "nn/environment.hpp"
#include "report/columns.hpp"
#include "report/text.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Integer = std::int64_t;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What all searches of a comparison look into.
struct Setup {
  ObjectiveSet objectives;
  std::shared_ptr<Problem> problem;  ///< points to the objectives
  nlohmann::json facts;
  std::unique_ptr<StudyTable> study;
  std::vector<ComparedCandidate> candidates{};
  std::map<std::string, std::string> truth_splits{};  ///< see GroundTruth
  std::optional<Integer> baseline{};                  ///< its number among them
};

/// Sets the objectives' ranges; those that nothing else says come from the baseline, all its
/// replicates. @throws InputError if the constraints exclude all candidates.
void set_ranges(Setup& setup, const Experiment& common, const Table& table) {
  if (const auto found = feasibility(setup.objectives, common.space, *setup.problem)) {
    found->require_any();
  }
  set_expected_ranges(setup.objectives, common.space, *setup.problem, setup.facts);
  const auto& objectives = setup.objectives.objectives;
  if (std::all_of(objectives.begin(), objectives.end(),
                  [](const auto& objective) { return objective.range.has_value(); })) {
    return;
  }
  std::vector<Evaluation> baseline;
  for (Integer n = 0; n < table.num_replicates(); ++n) {
    baseline.push_back(answer_of(*setup.problem, setup.problem->parse(common.baseline), n));
  }
  std::vector<const Evaluation*> pointers;
  for (const auto& evaluation : baseline) pointers.push_back(&evaluation);
  set_ranges_from_baseline(setup.objectives, pointers);
}

std::unique_ptr<Setup> set_up(const Experiment& common) {
  auto setup = std::make_unique<Setup>();
  setup->objectives = common.objectives;
  setup->problem = make_problem(common, setup->objectives, {});
  setup->facts = setup->problem->facts();
  const Table table(common.problem_settings.get<std::string>("table"));
  set_ranges(*setup, common, table);
  setup->study = std::make_unique<StudyTable>(
      table,
      StudyTable::Study{.space = common.space,
                        .objectives = setup->objectives,
                        .mode = parse_replay_mode(common.problem_settings.get<std::string>("mode")),
                        .seed = common.seed,
                        .problem = setup->problem});
  if (!common.baseline.empty()) {
    setup->baseline = table.find(setup->problem->parse(common.baseline));
  }
  const auto truth = setup->problem->truth();
  setup->truth_splits = truth.splits;
  for (Integer i = 0; i < table.num_mechanisms(); ++i) {
    const auto& name = table.mechanism(i);
    setup->candidates.push_back({.name = name,
                                 .label = setup->problem->label(name),
                                 .truth = truth.values.at(name),
                                 .believed = setup->study->believed(i)});
  }
  return setup;
}

/// All that ends a search.
nlohmann::json budget_json(const Experiment& common) {
  nlohmann::json budget = common.budget;
  budget["trainings"] = budget.at("evaluations");
  for (const auto* other : {"evaluations", "seconds", "gpu_seconds"}) budget.erase(other);
  return budget;
}

/// What must be equal where a comparison goes on. The table is told by its content, the budget
/// apart, and further seeds are welcome.
nlohmann::json settled(nlohmann::json config) {
  for (const auto* key : {"seed", "seeds", "algorithms"}) config.erase(key);
  config.at("problem").erase("table");
  return config;
}

/// Refuses to continue a comparison that searches of this one cannot be laid beside.
void check_recorded(const ComparisonStore& store, const Comparison& comparison, const Setup& setup,
                    const fs::path& folder) {
  const auto refuse = [&folder](const std::string& what) {
    throw InputError(folder.string() + " holds a comparison " + what +
                     "\nundo the change, or give another folder with --output");
  };
  const auto config = store.meta("config");
  if (!config) return;  // it was interrupted before it began
  if (store.meta("answering").value_or(1) != kAnswering) {
    refuse("whose candidates were judged by older rules (docs/candidates.md)");
  }
  const auto& table = setup.facts.at("table");
  if (const auto recorded = *store.meta("table"); recorded.at("sha256") != table.at("sha256")) {
    refuse("on another table: " + recorded.at("name").get<std::string>() + " (" +
           recorded.at("sha256").get<std::string>().substr(0, 12) + "), now " +
           table.at("name").get<std::string>() + " (" +
           table.at("sha256").get<std::string>().substr(0, 12) + ")");
  }
  const auto budget = budget_json(comparison.common());
  if (const auto differences = differing_keys(*store.meta("budget"), budget);
      !differences.empty()) {
    refuse("of another budget:\n  " + join(differences, "\n  "));
  }
  auto differences = differing_keys(settled(*config), settled(comparison.resolved()));
  if (*store.meta("objectives") != setup.objectives.record()) {
    differences.push_back("objectives: " + store.meta("objectives")->dump() + " -> " +
                          setup.objectives.record().dump());
  }
  for (const auto& recorded : store.algorithms()) {
    for (const auto& contender : comparison.contenders) {
      const auto given = contender.record();
      if (given.name != recorded.name || given == recorded) continue;
      const auto both = [](const ComparedAlgorithm& algorithm) {
        auto settings = algorithm.settings;
        settings["name"] = algorithm.key;
        return nlohmann::json{{algorithm.name, settings}};
      };
      for (const auto& difference : differing_keys(both(recorded), both(given))) {
        differences.push_back("algorithms." + difference);
      }
    }
  }
  if (!differences.empty()) {
    refuse("of another configuration:\n  " + join(differences, "\n  "));
  }
}

/// The algorithms that a store's configuration names and this comparison has not.
nlohmann::json other_algorithms(const ComparisonStore& store, const Comparison& comparison) {
  auto others = nlohmann::json::array();
  const auto config = store.meta("config").value_or(nlohmann::json::object());
  for (const auto& recorded : config.value("algorithms", nlohmann::json::array())) {
    const bool given = std::any_of(
        comparison.contenders.begin(), comparison.contenders.end(),
        [&recorded](const Contender& contender) { return recorded.at("label") == contender.name; });
    if (!given) others.push_back(recorded);
  }
  return others;
}

void record_comparison(ComparisonStore& store, const Comparison& comparison, const Setup& setup) {
  auto config = comparison.resolved();
  config["algorithms"] = other_algorithms(store, comparison);
  for (const auto& contender : comparison.contenders) {
    const auto record = contender.record();
    config["algorithms"].push_back({{"name", record.key},
                                    {"label", record.name},
                                    {"seeds", contender.seeds},
                                    {"settings", record.settings}});
  }
  auto table = setup.facts.at("table");
  table["file"] = comparison.common().problem_settings.get<std::string>("table");
  const auto environment = nn::environment();
  store.set_candidates(setup.candidates);
  store.set_meta("answering", kAnswering);
  store.set_meta("table", table);
  store.set_meta("truth_splits", setup.truth_splits);
  store.set_meta("budget", budget_json(comparison.common()));
  store.set_meta("objectives", setup.objectives.record());
  store.set_meta("reference_point", kReferencePoint);
  store.set_meta("environment", {{"attnas", kVersion},
                                 {"revision", kRevision},
                                 {"compiler", __VERSION__},
                                 {"processor", environment.processor}});
  store.set_meta("config", config);
}

/// A search to be run.
struct Job {
  const Contender* contender;
  Integer algorithm;  ///< its number in the store
  Integer seed;
};

std::vector<Job> missing_searches(const Comparison& comparison, ComparisonStore& store) {
  std::vector<Job> jobs;
  for (const auto& contender : comparison.contenders) {
    const auto algorithm = store.number_of(contender.record());
    const auto known = store.seeds(algorithm);
    for (Integer i = 0; i < contender.seeds; ++i) {
      const auto seed = static_cast<Integer>(contender.experiment.seed) + i;
      if (!known.contains(seed)) jobs.push_back({&contender, algorithm, seed});
    }
  }
  return jobs;
}

struct Finished {
  ComparedSearch search;
  Integer recycled = 0;  ///< evaluations beyond the replicates of the table
};

Finished run_search_of(const Job& job, const Setup& setup) {
  auto experiment = job.contender->experiment;
  experiment.seed = static_cast<std::uint64_t>(job.seed);
  const auto options = evaluator_options(experiment);
  const double before = thread_cpu_seconds();
  const auto evaluator =
      std::make_shared<TableEvaluator>(*setup.study, experiment.seed,
                                       TableEvaluator::Options{.repeated = options.repeated,
                                                               .replicates = options.replicates,
                                                               .budget = options.budget,
                                                               .baseline = setup.baseline});
  auto result = search(experiment, setup.objectives, evaluator, {});
  return {.search = {.algorithm = job.algorithm,
                     .seed = job.seed,
                     .search_seconds = thread_cpu_seconds() - before,
                     .ended_by = std::move(result.ended_by),
                     .trajectory = evaluator->take_trajectory()},
          .recycled = evaluator->num_recycled()};
}

/// Runs jobs on threads of its own and hands over what is finished in the order of the jobs,
/// however many threads there are.
class SearchPool {
 public:
  SearchPool(const std::vector<Job>& jobs, const Setup& setup, int threads)
      : jobs_(jobs), setup_(setup) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~SearchPool() {
    const std::lock_guard lock(mutex_);
    end_ = 0;  // begin no more
  }
  SearchPool(const SearchPool&) = delete;
  SearchPool& operator=(const SearchPool&) = delete;

  /// Waits for the next searches in order. @return them, none after the last.
  /// @throws what a search has thrown, once all before it are handed over.
  std::vector<Finished> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finished_.contains(taken_) || taken_ >= end_; });
    std::vector<Finished> result;
    for (auto next = finished_.find(taken_); next != finished_.end();
         next = finished_.find(taken_)) {
      result.push_back(std::move(next->second));
      finished_.erase(next);
      ++taken_;
    }
    if (result.empty() && broken_) std::rethrow_exception(broken_);
    return result;
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      const auto i = next_;
      if (i >= end_) return;
      ++next_;
      lock.unlock();
      try {
        auto finished = run_search_of(jobs_[i], setup_);
        lock.lock();
        finished_.emplace(i, std::move(finished));
      } catch (...) {
        lock.lock();
        if (i < end_) {
          end_ = i;
          broken_ = std::current_exception();
        }
      }
      changed_.notify_one();
    }
  }

  const std::vector<Job>& jobs_;
  const Setup& setup_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Finished> finished_;
  std::size_t next_ = 0;
  std::size_t taken_ = 0;
  std::size_t end_ = jobs_.size();  ///< behind the last job, or the first that broke
  std::exception_ptr broken_;
  std::vector<std::jthread> threads_;  ///< last: they end before what they use
};

/// One line that says how far the searches are: rewritten on a terminal, else a line each time that
/// another algorithm is reached.
class ProgressLine {
 public:
  ProgressLine(const std::vector<Job>& jobs, bool quiet)
      : jobs_(jobs), quiet_(quiet), terminal_(isatty(STDOUT_FILENO) == 1) {}
  ~ProgressLine() {
    if (open_) std::cout << std::endl;
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(std::size_t done) {
    const auto* contender = jobs_[done - 1].contender;
    const bool news = done == jobs_.size() || contender != std::exchange(contender_, contender);
    if (quiet_ || !(terminal_ || news)) return;
    const double left = seconds_since(started_) / static_cast<double>(done) *
                        static_cast<double>(jobs_.size() - done);
    const auto text = std::to_string(done) + "/" + std::to_string(jobs_.size()) + " searches, " +
                      contender->name + ", " + human_duration(left) + " left";
    if (terminal_) {
      std::cout << "\r\033[K" << text << std::flush;
      open_ = true;
    } else {
      std::cout << text << std::endl;
    }
  }

 private:
  const std::vector<Job>& jobs_;
  bool quiet_;
  bool terminal_;
  bool open_ = false;
  const Contender* contender_ = nullptr;  ///< that the last line named
  Clock::time_point started_ = Clock::now();
};

/// @return evaluations that went beyond the table's replicates.
Integer run_searches(const std::vector<Job>& jobs, const Setup& setup, ComparisonStore& store,
                     const CompareOptions& options) {
  constexpr double kSecondsBetweenCommits = 0.5;
  ProgressLine progress(jobs, options.quiet);
  SearchPool pool(jobs, setup, options.threads);
  Integer recycled = 0;
  std::size_t done = 0;
  std::vector<ComparedSearch> kept;
  auto committed = Clock::now();
  const auto commit = [&] {
    store.add(kept);
    kept.clear();
    committed = Clock::now();
    if (done > 0) progress.update(done);
  };
  try {
    while (done < jobs.size()) {
      for (auto& finished : pool.take()) {
        recycled += finished.recycled;
        kept.push_back(std::move(finished.search));
        ++done;
      }
      if (seconds_since(committed) > kSecondsBetweenCommits || done == jobs.size()) commit();
    }
  } catch (...) {
    commit();
    throw;
  }
  return recycled;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2.0;
}

/// What is not judged on the test split, a line; empty where everything is.
std::string judged_on_validation(const Setup& setup) {
  std::vector<std::string> names;
  for (const auto& [name, split] : setup.truth_splits) {
    if (split == "validation") names.push_back(name);
  }
  if (names.empty()) return {};
  return "beware: " + join(names) +
         " judged on the validation split, as searched: the table does not hold what the test "
         "split says of " +
         (names.size() == 1 ? "it" : "them") + "\n";
}

/// What each algorithm of the store came to, a line each.
std::string closing_table(const ComparisonStore& store, const Setup& setup) {
  Points points;
  for (const auto& candidate : setup.candidates) points.push_back(candidate.truth);
  const Truth truth(setup.objectives, std::move(points));
  const bool several = setup.objectives.objectives.size() > 1;

  Column names{.header = "algorithm", .left = true};
  Column seeds{.header = "searches"};
  Column outcome{.header = several ? "true hypervolume" : "true regret"};
  Column everything{.header = "of everything evaluated"};
  Column asks{.header = "asks/training"};
  Column rate{.header = "asks/s"};
  const auto algorithms = store.algorithms();
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    std::vector<double> outcomes;
    std::vector<double> of_everything;
    const auto trust = trust_of(algorithms[i].settings);
    double asked = 0.0;
    double trained = 0.0;
    double seconds = 0.0;
    store.for_each_search(static_cast<Integer>(i), [&](const ComparedSearch& search) {
      if (search.trajectory.candidates.empty()) return;
      outcomes.push_back(truth.handed_over(search.trajectory, trust));
      of_everything.push_back(truth.everything(search.trajectory));
      asked += static_cast<double>(search.trajectory.candidates.size());
      trained += search.trajectory.trained.back();
      seconds += search.search_seconds;
    });
    if (outcomes.empty()) continue;
    names.cells.push_back(algorithms[i].name);
    seeds.cells.push_back(std::to_string(outcomes.size()));
    outcome.cells.push_back(fixed_text(median(outcomes), several ? 4 : 3));
    everything.cells.push_back(fixed_text(median(of_everything), several ? 4 : 3));
    asks.cells.push_back(fixed_text(asked / trained, 2));
    rate.cells.push_back(human_count(asked / seconds));
  }
  const auto& first = setup.objectives.objectives.front();
  const auto title = several ? "medians; true hypervolume of the fronts that searches hand over, "
                               "as a share of the best, " +
                                   number_text(truth.best())
                             : "medians; regret of " + first.name +
                                   " of what searches hand over, beyond the best, " +
                                   number_text(first.minimised(truth.best()));
  return title + "\n" + judged_on_validation(setup) +
         aligned({names, seeds, outcome, everything, asks, rate});
}

}  // namespace

void run_comparison(const Comparison& comparison, const CompareOptions& options) {
  const auto setup = set_up(comparison.common());
  const auto file = options.folder / "comparison.sqlite";
  fs::create_directories(options.folder);
  ComparisonStore store(file);
  check_recorded(store, comparison, *setup, options.folder);
  record_comparison(store, comparison, *setup);
  Integer recycled = 0;
  try {
    recycled = run_searches(missing_searches(comparison, store), *setup, store, options);
  } catch (const StopRequested&) {
    store.require_in_place();  // else nothing is kept
    throw;
  }
  std::cout << '\n' << closing_table(store, *setup);
  if (recycled > 0) {
    std::cout << "\n"
              << recycled << " evaluations met a recorded training again: the table has "
              << setup->study->table().num_replicates() << " of each mechanism\n";
  }
  std::cout << "\nwritten to " << file.string() << '\n';
}

}  // namespace nas
