#include "study/reproduction.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/field_differences.hpp"
#include "core/seed.hpp"
#include "core/stop.hpp"
#include "evaluation/failures.hpp"
#include "evaluation/local_executor.hpp"
#include "instruments/environment.hpp"
#include "ops/memory.hpp"
#include "search/problem.hpp"
#include "store/replicates.hpp"
#include "store/store.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/continuing.hpp"
#include "study/session/session.hpp"
#include "study/session/set_up.hpp"

namespace nas {

Task recorded_task(const Evaluation& evaluation, const Measurement& measurement) {
  return read_task({{"id", evaluation.id},
                    {"candidate", evaluation.candidate},
                    {"replicate", evaluation.replicate},
                    {"identity", whole_identity(evaluation)}},
                   measurement);
}

namespace {

/// What is read of a run whose evaluations are made again.
struct RecordToRepeat {
  std::string place;  ///< the run, for messages
  Experiment experiment;
  std::vector<nlohmann::json> sessions{};
  std::vector<Evaluation> drawn{};
  std::int64_t possible = 0;
};

/// Whether measuring the same task again must come to the same.
bool can_be_repeated(const Evaluation& evaluation) {
  return evaluation.status != Status::paused && !may_be_retried(evaluation.status) &&
         !is_screened_out(evaluation);
}

/// Draws evaluations by a number that each has from the run's seed and its id: whatever else the
/// record holds, or comes to hold, the order among them is the same.
void draw(const Store& store, std::int64_t count, RecordToRepeat& record) {
  std::vector<std::pair<std::uint64_t, std::string>> places;
  store.each_evaluation([&](const Evaluation& evaluation) {
    if (!can_be_repeated(evaluation)) return;
    const auto place = derive_seed(record.experiment.seed, 0, "reproduction", evaluation.id);
    places.emplace_back(place, evaluation.id);
  });
  record.possible = std::ssize(places);
  std::sort(places.begin(), places.end());
  if (count < record.possible) places.resize(static_cast<std::size_t>(count));
  for (const auto& [place, id] : places) {
    if (auto evaluation = store.find(id)) record.drawn.push_back(std::move(*evaluation));
  }
}

RecordToRepeat read_record(const std::filesystem::path& run, const ReproductionSettings& settings) {
  const auto file = store_file(run);
  const Store store(file, Store::Mode::read_only);
  const auto config = store.meta("config");
  if (!config) throw InputError(file.string() + ": has no configuration to make it again by");
  check_plugins(store.environments(), file.parent_path());
  keep_products(store.sessions());
  RecordToRepeat record{.place = run.string(),
                        .experiment = recorded_experiment(*config, settings.overrides),
                        .sessions = store.sessions()};
  if (!settings.overrides.empty()) require_same_results(*config, record.experiment, record.place);
  draw(store, settings.count, record);
  if (record.drawn.empty()) {
    throw InputError(record.place +
                     ": no evaluation to make again, must be one that came to its end and did not "
                     "fail");
  }
  return record;
}

/// How a training run was made otherwise than those of the search, as tuning does, for people; the
/// test split apart, which a re-test scores.
std::string own_settings(const Evaluation& evaluation, const nlohmann::json& identity) {
  const auto of_search = identity.find("training");
  const auto own = evaluation.identity.find("training");
  if (of_search == identity.end() || own == evaluation.identity.end()) return {};
  std::vector<std::string> found;
  for (const auto& [name, value] : own->items()) {
    if (name == "score_test" || of_search->value(name, nlohmann::json()) == value) continue;
    found.push_back(name + " = " + value.dump());
  }
  return found.empty() ? std::string() : " (" + join(found) + ")";
}

std::string name_of(const Evaluation& evaluation) {
  return evaluation.candidate + " replicate " + std::to_string(evaluation.replicate);
}

/// A text of a map; empty where there is none of the key.
std::string text_in(const nlohmann::json& map, const char* key) {
  const auto found = map.is_object() ? map.find(key) : map.end();
  return found != map.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The environment of the session that made an evaluation; null where that is not known.
nlohmann::json recorded_environment(const Evaluation& evaluation,
                                    const std::vector<nlohmann::json>& sessions) {
  const auto& measured = evaluation.measured;
  if (sessions.empty() || !text_in(measured, "reused_from").empty()) return nullptr;
  const nlohmann::json first = 0U;  // where it does not say
  const auto number = measured.is_object() ? measured.value("session", first) : first;
  if (!number.is_number_unsigned() || number.get<std::size_t>() >= sessions.size()) return nullptr;
  return sessions[number.get<std::size_t>()].value("environment", nlohmann::json());
}

/// The machine and the libraries of this process, to compare with those of a record.
class Here {
 public:
  Here(const RecordToRepeat& record, const Problem& problem)
      : sessions_(record.sessions),
        environment_(nn::to_json(nn::environment())),
        device_(text_in(problem.facts(), "device")) {
    if (problem.expensive()) {
      model_ = nn::device_model(record.experiment.evaluation.get<std::string>("device"));
    }
  }

  /// The kind of device that an evaluation was made on, where it is another one than here.
  [[nodiscard]] std::string other_device(const Evaluation& evaluation) const {
    auto device = text_in(evaluation.measured, "device");  // "cuda:0"
    device = device.substr(0, device.find(':'));
    if (device.empty()) {
      device = text_in(recorded_environment(evaluation, sessions_), "device");
    }
    return device == device_ ? std::string() : device;
  }
  [[nodiscard]] const std::string& device() const { return device_; }

  /// See Reproduced::environment.
  [[nodiscard]] std::string differences(const Evaluation& evaluation) const {
    std::vector<std::string> found;
    const auto compare = [&found](const char* what, const std::string& there,
                                  const std::string& here) {
      if (there.empty() || there == here) return;
      found.push_back(std::string(what) + " " + there + " -> " + here);
    };
    if (const auto from = text_in(evaluation.measured, "reused_from"); !from.empty()) {
      found.push_back("taken from " + from);
    }
    const auto environment = recorded_environment(evaluation, sessions_);
    for (auto& change : environment_changes(environment, environment_)) {
      found.push_back(std::move(change));
    }
    compare("compiler", text_in(environment, "compiler"), __VERSION__);
    compare("processor", text_in(environment, "processor"), text_in(environment_, "processor"));
    compare("device", other_device(evaluation), device_);
    compare("device", text_in(evaluation.measured, "model"), model_);  // of a worker elsewhere
    return join(found);
  }
  /// See Reproduced::environment_known.
  [[nodiscard]] bool knows_environment(const Evaluation& evaluation) const {
    return text_in(evaluation.measured, "model").empty() &&  // which workers elsewhere tell
           tells_environment(recorded_environment(evaluation, sessions_));
  }

 private:
  const std::vector<nlohmann::json>& sessions_;
  nlohmann::json environment_;
  std::string device_;  ///< its kind: "cpu", "cuda"
  std::string model_{};
};

/// The tasks of all, or none.
std::vector<Task> tasks_of(const RecordToRepeat& record, const Problem& problem, const Here& here,
                           bool force_device) {
  std::vector<Task> tasks;
  for (const auto& evaluation : record.drawn) {
    try {
      tasks.push_back(recorded_task(evaluation, problem));
    } catch (const InputError& error) {
      const auto environment = recorded_environment(evaluation, record.sessions);
      const auto revision = text_in(environment, "revision");
      throw InputError(record.place + ": " + name_of(evaluation) +
                       " would be made otherwise here: " + error.what() +
                       (revision.empty()
                            ? ""
                            : "; it was made by attnas " + text_in(environment, "attnas") +
                                  ", revision " + revision));
    }
    if (const auto device = here.other_device(evaluation); !device.empty() && !force_device) {
      throw InputError(record.place + ": " + name_of(evaluation) + " was made on " + device +
                       ", would be made again on " + here.device() +
                       ", which rounds differently; --force-device does so all the same");
    }
  }
  return tasks;
}

/// What is known of a task beforehand, as a study finds it out before it measures: ok where there is
/// something to measure.
Evaluation screened(const Task& task, Problem& problem) {
  auto evaluation = unmeasured(task);
  evaluation.status = Status::ok;
  record_lone_failure(evaluation, [&] { screen(problem, task, evaluation); });
  return evaluation;
}

/// @param again  of the task of `recorded`, so that what says which evaluation it is agrees.
std::vector<std::string> differences_of(const Evaluation& recorded, const Evaluation& again) {
  const auto before = canonical_json(recorded);
  const auto now = canonical_json(again);
  std::vector<std::string> found;
  for (const std::string key : {"status", "reason", "curve", "values"}) {
    const auto fields = differences(before.at(key), now.at(key), {.elements = true}, key);
    found.insert(found.end(), fields.begin(), fields.end());
  }
  return found;
}

std::optional<double> loss_difference(const Evaluation& recorded, const Evaluation& again) {
  if (recorded.curve.empty() || again.curve.empty()) return std::nullopt;
  const auto& before = recorded.curve.back();
  const auto& now = again.curve.back();
  if (before.step != now.step) return std::nullopt;
  const auto mean = [](const Scores& scores) {
    return scores.nll / static_cast<double>(scores.tokens);
  };
  const double difference =
      std::abs(mean(now.valid) - mean(before.valid)) / std::abs(mean(before.valid));
  return std::isfinite(difference) ? std::optional(difference) : std::nullopt;
}

}  // namespace

Reproduction reproduce(const std::filesystem::path& run, const ReproductionSettings& settings,
                       const std::function<void(const Reproduction&)>& listener) {
  nn::install_cpu_allocator();  // before the first tensor
  const auto record = read_record(run, settings);
  const auto& experiment = record.experiment;
  const auto problem = make_problem(experiment, experiment.objectives, /*folder=*/{});
  if (problem->expensive()) {
    const auto threads = experiment.evaluation.get<std::int64_t>("threads");
    nn::take_product_buffers(problem->num_workers() * static_cast<int>(threads));
  }
  // With what was measured before training: that is another number each time, and decides about
  // constraints.
  problem->begin_batch(pointers(record.drawn));
  const Here here(record, *problem);
  const auto tasks = tasks_of(record, *problem, here, settings.force_device);

  std::map<std::string, const Evaluation*> recorded;  // by id
  for (const auto& evaluation : record.drawn) recorded.emplace(evaluation.id, &evaluation);
  Reproduction reproduction{.problem = experiment.problem,
                            .trains = problem->expensive(),
                            .possible = record.possible,
                            .drawn = std::ssize(record.drawn)};
  const auto identity = problem->identity();
  const auto take = [&](Evaluation again) {
    require_finite_values(again);  // as recording it does
    const auto& before = *recorded.at(again.id);
    const auto label = problem->label(before.candidate) + own_settings(before, identity);
    reproduction.made.push_back({.label = label,
                                 .replicate = before.replicate,
                                 .seconds = again.measured.value("train_seconds", 0.0),
                                 .differences = differences_of(before, again),
                                 .environment = here.differences(before),
                                 .environment_known = here.knows_environment(before),
                                 .loss_difference = loss_difference(before, again)});
    if (listener) listener(reproduction);
  };
  const auto executor = local_executor(*problem, problem->num_workers());
  for (const auto& task : tasks) {
    if (stop_requested()) throw StopRequested();
    auto evaluation = screened(task, *problem);
    if (evaluation.status != Status::ok) {
      take(std::move(evaluation));
      continue;
    }
    evaluation.status = Status::failed;  // until measured
    executor->submit(task, std::move(evaluation));
  }
  while (auto event = executor->next()) {
    for (auto& evaluation : event->evaluations) take(std::move(evaluation));
  }
  return reproduction;
}

}  // namespace nas
