#include "study/comparison_study.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/field_differences.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "core/thread_clock.hpp"
#include "core/version.hpp"
#include "core/warning.hpp"
#include "instruments/environment.hpp"
#include "search/problem.hpp"
#include "statistics/statistics.hpp"
#include "store/replicates.hpp"
#include "study/session/continuing.hpp"
#include "study/session/feasibility.hpp"
#include "study/session/ranges.hpp"
#include "study/session/session.hpp"
#include "table/outcome.hpp"
#include "table/search_pool.hpp"
#include "table/table_evaluator.hpp"

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
  const auto shown = shown_candidates(common.space, *setup.problem);
  if (const auto found = feasibility(setup.objectives, shown, *setup.problem)) {
    found->require_any();
  }
  set_expected_ranges(setup.objectives, shown, *setup.problem, setup.facts);
  const auto& objectives = setup.objectives.objectives;
  if (std::all_of(objectives.begin(), objectives.end(),
                  [](const auto& objective) { return objective.range.has_value(); })) {
    return;
  }
  std::vector<Evaluation> baseline;
  const auto candidate = setup.problem->parse(common.baseline);
  for (Integer n = 0; n < table.num_replicates(); ++n) {
    baseline.push_back(answer_of(*setup.problem, candidate, n));
  }
  set_ranges_from_baseline(setup.objectives, pointers(baseline));
}

/// @throws InputError where every front would have the hypervolume 0, so that nothing is compared.
void require_hypervolume(const Setup& setup, const std::string& table) {
  const auto& objectives = setup.objectives.objectives;
  if (objectives.size() < 2) return;
  const auto counts = [&setup](const ComparedCandidate& candidate) {
    const auto scaled = setup.objectives.scaled(candidate.truth);
    return std::all_of(scaled.begin(), scaled.end(),
                       [](double value) { return value < kReferencePoint; });
  };
  if (std::any_of(setup.candidates.begin(), setup.candidates.end(), counts)) return;
  std::vector<std::string> ranges;
  for (const auto& objective : objectives) {
    ranges.push_back(objective.name + ": [" + shortest(objective.range->best) + ", " +
                     shortest(objective.range->worst) + "]");
  }
  throw InputError("objectives: no mechanism of " + table + " lies within all ranges (" +
                   join(ranges) +
                   "), so that every front would have the hypervolume 0; `range` must be wider");
}

/// @throws InputError where a contender evaluates more replicates than the table answers with.
void require_replicates(const Comparison& comparison, const Contender& contender,
                        const ObjectiveSet& objectives) {
  const auto& common = comparison.common();
  const auto same = [&](const char* setting) {
    return common.evaluation.get<Integer>(setting) ==
           contender.experiment.evaluation.get<Integer>(setting);
  };
  if (same("replicates") && same("racing_replicates"))
    return;  // the problem of all looked at these
  try {
    make_problem(contender.experiment, objectives, {});
  } catch (const InputError& error) {
    throw InputError(contender.name + ": " + error.what());
  }
}

/// What replicates of a mechanism that may answer say together.
std::vector<double> believed(const StudyTable& study, const Comparison& comparison,
                             Integer mechanism) {
  if (comparison.draws == 0) return study.believed(mechanism);
  return study.judge(mechanism, redrawn_replicates(study.table(), mechanism)).fitness;
}

std::unique_ptr<Setup> set_up(const Comparison& comparison) {
  const auto& common = comparison.common();
  auto setup = std::make_unique<Setup>();
  setup->objectives = common.objectives;
  setup->problem = make_problem(common, setup->objectives, {});
  setup->facts = setup->problem->facts();
  const Table table(common.problem_settings.get<std::string>("table"));
  set_ranges(*setup, common, table);
  std::set<Integer> rungs;
  for (const auto& contender : comparison.contenders) {
    require_replicates(comparison, contender, setup->objectives);
    require_affordable(contender.experiment, *setup->problem);
    const auto fidelity = fidelity_of(contender.experiment, *setup->problem);
    if (fidelity) rungs.insert(fidelity->rungs.begin(), fidelity->rungs.end());
  }
  setup->study = std::make_unique<StudyTable>(
      table,
      StudyTable::Study{.space = common.space,
                        .objectives = setup->objectives,
                        .mode = parse_replay_mode(common.problem_settings.get<std::string>("mode")),
                        .problem = setup->problem,
                        .rungs = std::move(rungs)});
  if (!common.baseline.empty()) {
    setup->baseline = table.find(setup->problem->parse(common.baseline).name);
  }
  const auto truth = setup->problem->truth();
  setup->truth_splits = truth.splits;
  for (Integer i = 0; i < table.num_mechanisms(); ++i) {
    const auto& name = table.mechanism(i);
    setup->candidates.push_back({.name = name,
                                 .label = setup->problem->label(name),
                                 .truth = truth.values.at(name),
                                 .believed = believed(*setup->study, comparison, i)});
  }
  require_hypervolume(*setup, common.problem_settings.get<std::string>("table"));
  return setup;
}

/// All that ends a search.
nlohmann::json budget_json(const Experiment& common) {
  nlohmann::json budget = common.budget;
  budget["trainings"] = budget.at("evaluations");
  for (const auto* other : {"evaluations", "seconds", "gpu_seconds"}) budget.erase(other);
  if (budget.at("train_steps") == 0)
    budget.erase("train_steps");  // as before there was such a limit
  return budget;
}

/// What decides which draw answers a search, an empty object where none does.
nlohmann::json draws_json(const Comparison& comparison) {
  if (comparison.draws == 0) return nlohmann::json::object();
  return {{"tables", comparison.draws}, {"seed", comparison.common().seed}};
}

/// The draw that answers the searches of a seed, all algorithms' alike.
std::optional<Draw> draw_of(const Comparison& comparison, Integer seed) {
  if (comparison.draws == 0) return std::nullopt;
  const auto first = comparison.common().seed;
  return Draw{.seed = first,
              .number = static_cast<Integer>((static_cast<std::uint64_t>(seed) - first) %
                                             static_cast<std::uint64_t>(comparison.draws))};
}

/// What must be equal where a comparison goes on. The table is told by its content, the budget
/// apart, and further seeds are welcome.
nlohmann::json settled(nlohmann::json config) {
  for (const auto* key : {"seed", "seeds", "algorithms"}) config.erase(key);
  config.at("problem").erase("table");
  return config;
}

/// The different environments that searches of a comparison were made in, in the order in which they
/// came.
std::vector<nlohmann::json> environments_of(const ComparisonStore& store) {
  return store.meta("environments").value_or(nlohmann::json::array());
}

/// The revisions of the program that they were made by.
std::set<std::string> revisions_of(const ComparisonStore& store) {
  std::set<std::string> revisions;
  for (const auto& environment : environments_of(store)) {
    revisions.insert(environment.value("revision", "unknown"));
  }
  return revisions;
}

/// The algorithms that a recorded configuration names and this comparison has not.
nlohmann::json other_algorithms(const nlohmann::json& config, const Comparison& comparison) {
  auto others = nlohmann::json::array();
  for (const auto& recorded : config.value("algorithms", nlohmann::json::array())) {
    const bool given = std::any_of(
        comparison.contenders.begin(), comparison.contenders.end(),
        [&recorded](const Contender& contender) { return recorded.at("label") == contender.name; });
    if (!given) others.push_back(recorded);
  }
  return others;
}

/// In what algorithms are not the recorded ones of the same names.
std::vector<std::string> other_settings(const ComparisonStore& store,
                                        const Comparison& comparison) {
  const auto settings = [](const ComparedAlgorithm& algorithm) {
    auto all = algorithm.settings;
    all["name"] = algorithm.key;
    if (all.contains("/fidelity/audit"_json_pointer)) all["fidelity"].erase("audit");  // of 0.1.0
    return all;
  };
  std::vector<std::string> found;
  const auto compare = [&](const ComparedAlgorithm& recorded) {
    (void)trust_of(recorded.settings);
    for (const auto& contender : comparison.contenders) {
      const auto given = contender.record();
      if (given.name != recorded.name || given == recorded) continue;
      const auto own =
          differences(settings(recorded), settings(given), {}, "algorithms." + given.name);
      found.insert(found.end(), own.begin(), own.end());
    }
  };
  for (const auto& recorded : store.algorithms()) {
    store.reading("the algorithm " + recorded.name, [&] { compare(recorded); });
  }
  return found;
}

/// Refuses to continue a comparison that searches of this one cannot be laid beside, or of which
/// anything that is read of it later is damaged: before it is written to.
void check_recorded(const ComparisonStore& store, const Comparison& comparison, const Setup& setup,
                    const fs::path& folder) {
  const auto refuse = [&folder](const std::string& what) {
    throw InputError(folder.string() + " holds a comparison " + what +
                     "\nundo the change, or give another folder with --output");
  };
  const auto check = [&store](const std::string& key, const auto& read) {
    const auto fact = store.meta(key);
    if (!fact) store.refuse("the fact " + key, "it is missing");
    store.reading("the fact " + key, [&] { read(*fact); });
  };
  const auto num_algorithms = std::ssize(store.algorithms());
  if (num_algorithms == 0 && !store.meta("config")) return;  // it was interrupted before it began
  store.reading("the fact environments", [&] {
    (void)revisions_of(store);
    check_plugins(environments_of(store), folder);
  });
  if (store.meta("answering").value_or(1) != kAnswering) {
    refuse("whose candidates were judged by older rules (docs/candidates.md)");
  }
  check("table", [&](const nlohmann::json& recorded) {
    const auto& table = setup.facts.at("table");
    if (recorded.at("sha256") == table.at("sha256")) return;
    const auto words = [](const nlohmann::json& one) {
      return one.at("name").get<std::string>() + " (" +
             one.at("sha256").get<std::string>().substr(0, 12) + ")";
    };
    refuse("on another table: " + words(recorded) + ", now " + words(table));
  });
  check("budget", [&](const nlohmann::json& recorded) {
    const auto others = differing_keys(recorded, budget_json(comparison.common()));
    if (!others.empty()) refuse("of another budget:\n  " + join(others, "\n  "));
  });
  std::vector<std::string> differences = differing_keys(
      nlohmann::json{{"draws", store.meta("draws").value_or(nlohmann::json::object())}},
      nlohmann::json{{"draws", draws_json(comparison)}});
  check("config", [&](const nlohmann::json& recorded) {
    (void)other_algorithms(recorded, comparison);
    const auto others = differing_keys(settled(recorded), settled(comparison.resolved()));
    differences.insert(differences.end(), others.begin(), others.end());
  });
  check("objectives", [&](const nlohmann::json& recorded) {
    const auto now = setup.objectives.record();
    if (recorded == now) return;
    differences.push_back("objectives: " + recorded.dump() + " -> " + now.dump());
  });
  const auto others = other_settings(store, comparison);
  differences.insert(differences.end(), others.begin(), others.end());
  if (!differences.empty()) {
    refuse("of another configuration:\n  " + join(differences, "\n  "));
  }
  for (Integer i = 0; i < num_algorithms; ++i) {
    store.for_each_search(i, [](const ComparedSearch& /*search*/) {
      if (stop_requested()) throw StopRequested();
    });
  }
}

void record_comparison(ComparisonStore& store, const Comparison& comparison, const Setup& setup) {
  auto config = comparison.resolved();
  config["algorithms"] =
      other_algorithms(store.meta("config").value_or(nlohmann::json::object()), comparison);
  for (const auto& contender : comparison.contenders) {
    const auto record = contender.record();
    config["algorithms"].push_back({{"name", record.key},
                                    {"label", record.name},
                                    {"seeds", contender.seeds},
                                    {"settings", record.settings}});
  }
  auto table = setup.facts.at("table");
  table["file"] = comparison.common().problem_settings.get<std::string>("table");
  table["training_steps"] = setup.study->steps();
  store.set_candidates(setup.candidates);
  store.set_meta("answering", kAnswering);
  store.set_meta("table", table);
  store.set_meta("truth_splits", setup.truth_splits);
  if (comparison.draws > 0) store.set_meta("draws", draws_json(comparison));
  store.set_meta("budget", budget_json(comparison.common()));
  store.set_meta("objectives", setup.objectives.record());
  store.set_meta("reference_point", kReferencePoint);
  store.set_meta("config", config);
}

/// Adds this process' environment to those of a comparison that it searches for.
void record_environment(ComparisonStore& store) {
  nlohmann::json environment = {{"attnas", kVersion},
                                {"revision", kRevision},
                                {"compiler", __VERSION__},
                                {"processor", nn::environment(/*products=*/false).processor}};
  if (auto plugins = plugins_record(); !plugins.empty()) {
    environment["plugins"] = std::move(plugins);
  }
  auto all = environments_of(store);
  if (std::find(all.begin(), all.end(), environment) == all.end()) all.push_back(environment);
  store.set_meta("environments", all);
}

/// Warns where not all searches are of one program.
void warn_of_revisions(const ComparisonStore& store, const fs::path& folder) {
  const auto revisions = revisions_of(store);
  if (revisions.size() < 2) return;
  warn(folder.string() + " holds searches by several revisions of attnas: " +
       join({revisions.begin(), revisions.end()}) +
       ". Where these search otherwise, not only algorithms differ");
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

ComparedSearch run_search_of(const Job& job, const Setup& setup, const Comparison& comparison) {
  auto experiment = job.contender->experiment;
  experiment.seed = static_cast<std::uint64_t>(job.seed);
  const auto options = evaluator_options(experiment);
  const double before = thread_cpu_seconds();
  const auto evaluator = std::make_shared<TableEvaluator>(
      *setup.study, experiment.seed,
      TableEvaluator::Options{.repeated = options.repeated,
                              .replicates = options.replicates,
                              .budget = options.budget,
                              .baseline = setup.baseline,
                              .draw = draw_of(comparison, job.seed)});
  auto result = search(experiment, setup.objectives, evaluator, {}, {},
                       fidelity_of(experiment, *setup.problem));
  return {.algorithm = job.algorithm,
          .seed = job.seed,
          .search_seconds = thread_cpu_seconds() - before,
          .ended_by = std::move(result.ended_by),
          .trajectory = evaluator->take_trajectory()};
}

void run_searches(const std::vector<Job>& jobs, const Comparison& comparison, const Setup& setup,
                  ComparisonStore& store, const ComparisonSettings& settings) {
  constexpr double kSecondsBetweenCommits = 0.5;
  SearchPool pool(
      jobs.size(),
      [&](std::size_t number) { return run_search_of(jobs[number], setup, comparison); },
      settings.threads);
  std::size_t done = 0;
  std::vector<ComparedSearch> kept;
  auto committed = Clock::now();
  const auto commit = [&] {
    store.add(kept);
    kept.clear();
    committed = Clock::now();
    if (done > 0 && settings.on_progress) {
      settings.on_progress(done, jobs.size(), jobs[done - 1].contender->name);
    }
  };
  try {
    while (done < jobs.size()) {
      for (auto& search : pool.take()) {
        kept.push_back(std::move(search));
        ++done;
      }
      if (seconds_since(committed) > kSecondsBetweenCommits || done == jobs.size()) commit();
    }
  } catch (...) {
    commit();
    throw;
  }
}

/// The outcome of each algorithm of the store.
ComparisonResult result_of(const ComparisonStore& store, const Setup& setup) {
  Points points;
  for (const auto& candidate : setup.candidates) points.push_back(candidate.truth);
  const Truth truth(setup.objectives, std::move(points));
  const auto& first = setup.objectives.objectives.front();
  ComparisonResult result{.several = setup.objectives.objectives.size() > 1,
                          .objective = first.name,
                          .replicates = setup.study->table().num_replicates()};
  result.best = result.several ? truth.best() : first.minimised(truth.best());
  for (const auto& [name, split] : setup.truth_splits) {
    if (split == "validation") result.judged_on_validation.push_back(name);
  }
  const bool draws = setup.study->mode() != ReplayMode::mean;  // one replicate after the other
  const auto algorithms = store.algorithms();
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    std::vector<double> returned;
    std::vector<double> everything;
    const auto trust = trust_of(algorithms[i].settings);
    double asked = 0.0;
    double trained = 0.0;
    double seconds = 0.0;
    store.for_each_search(static_cast<Integer>(i), [&](const ComparedSearch& search) {
      if (search.trajectory.candidates.empty()) return;
      returned.push_back(truth.returned(search.trajectory, trust));
      everything.push_back(truth.everything(search.trajectory));
      asked += static_cast<double>(search.trajectory.candidates.size());
      trained += search.trajectory.trained.back();
      if (draws) result.recycled += num_recycled(search.trajectory, result.replicates);
      seconds += search.search_seconds;
    });
    if (returned.empty()) continue;
    result.algorithms.push_back({.name = algorithms[i].name,
                                 .searches = std::ssize(returned),
                                 .returned = median(returned),
                                 .interval = median_interval(returned),
                                 .everything = median(everything),
                                 .asks_per_training = asked / trained,
                                 .asks_per_second = asked / seconds});
  }
  return result;
}

}  // namespace

ComparisonResult run_comparison(const Comparison& comparison, const ComparisonSettings& settings) {
  const auto setup = set_up(comparison);
  if (stop_requested()) throw StopRequested();
  make_folder(settings.folder);
  ComparisonStore store(settings.folder / "comparison.sqlite");
  check_recorded(store, comparison, *setup, settings.folder);
  record_comparison(store, comparison, *setup);
  const auto jobs = missing_searches(comparison, store);
  if (!jobs.empty()) record_environment(store);
  warn_of_revisions(store, settings.folder);
  try {
    run_searches(jobs, comparison, *setup, store, settings);
  } catch (const StopRequested&) {
    store.require_in_place();  // else nothing is kept
    throw;
  }
  return result_of(store, *setup);
}

}  // namespace nas
