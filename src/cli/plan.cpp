#include "cli/plan.hpp"

#include <cmath>
#include <functional>
#include <sstream>
#include <string_view>

#include "core/format.hpp"
#include "data/corpus_facts.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/shorthand.hpp"
#include "instruments/environment.hpp"
#include "report/text.hpp"
#include "search/algorithm.hpp"
#include "study/reader/engines.hpp"
#include "study/session/session.hpp"

namespace nas {

namespace {

/// What the problem's facts say of its corpus, model and training, one line each; nothing for a
/// problem that trains nothing.
void training_lines(const Experiment& experiment, const nlohmann::json& facts,
                    const std::function<void(std::string_view, const std::string&)>& line) {
  for (const auto* own : {"command", "base"}) {
    if (facts.contains(own)) return line(own, facts.at(own).get<std::string>());
  }
  const auto count = [](double value) { return human_count(value); };
  line("corpus", facts.value("corpus_description", facts.value("corpus", "")) + ", " +
                     count(facts.value("train_windows", 0.0)) + " training windows");
  const auto unknown = facts.value("unknown_shares", UnknownShares{});
  if (!unknown.empty()) line("unknown", unknown_text(unknown));
  line("model", std::string(to_string(experiment.semantics)) + " semantics, " +
                    count(facts.value("vanilla_parameters", 0.0)) + " parameters, " +
                    count(facts.value("vanilla_flops", 0.0)) +
                    " FLOPs per forward pass (vanilla mechanism)");
  line("training", std::to_string(experiment.training.get<std::int64_t>("steps")) + " steps of " +
                       std::to_string(experiment.training.get<std::int64_t>("batch_size")) +
                       " windows: " + shortest(std::round(facts.value("epochs", 0.0) * 100) / 100) +
                       " epochs");
}

/// A listed mechanism with what its name does not say of how it differs from the baseline.
std::string beside(const std::string& name, const Experiment& experiment) {
  if (experiment.baseline.empty()) return name;
  const auto frame = frame_of(experiment);
  const auto differs = unsaid_differences(canonical(parse_model(name, frame)),
                                          canonical(parse_model(experiment.baseline, frame)));
  return name + (differs.empty() ? "" : ", differs from the baseline also in " + join(differs));
}

/// In full where each digit counts.
std::string combinations_text(double count) {
  constexpr double kExact = 1e15;
  return count < kExact ? std::to_string(static_cast<std::int64_t>(count)) : human_count(count);
}

/// Every setting with its effective value, "training.steps = 5000", one per line.
void settings_lines(const nlohmann::json& value, const std::string& path, std::ostream& out) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      settings_lines(item, path.empty() ? key : path + "." + key, out);
    }
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      settings_lines(value[i], path + "[" + std::to_string(i) + "]", out);
    }
  } else {
    out << "  " << path << " = " << (value.is_number_float() ? shortest(value) : value.dump())
        << '\n';
  }
}

/// What the search will ask for and train, as far as a rehearsal without races can tell.
std::string evaluations_text(const Experiment& experiment, const Plan& plan) {
  const auto& rehearsal = plan.rehearsal;
  const auto racing = evaluator_options(experiment).racing;
  const bool cut = racing && experiment.budget.get<std::int64_t>("evaluations") > 0;
  return (plan.ended_by_time || (rehearsal.whole && cut) ? "at most "
          : rehearsal.whole                              ? ""
                                                         : "at least ") +
         std::to_string(rehearsal.asked) + " asked in " + std::to_string(rehearsal.batches) +
         (rehearsal.batches == 1 ? " batch, " : " batches, ") + (racing ? "at least " : "about ") +
         std::to_string(rehearsal.trained) + " trained" +
         (plan.ended_by_time ? " until the budget's seconds are spent" : "") +
         (racing ? " (races: up to " + std::to_string(racing->replicates) + " times each)" : "") +
         (experiment.baseline.empty() ? "" : ", and the baseline " + experiment.baseline);
}

/// What pruning leaves of the steps that all candidates would take, and what they are spent on.
std::string rungs_text(const Experiment& experiment, const Plan& plan) {
  const auto& rehearsal = plan.rehearsal;
  const auto whole = plan.facts.value("steps", experiment.training.get<std::int64_t>("steps"));
  const auto options = evaluator_options(experiment);
  auto text = "about " + grouped(rehearsal.steps) + " steps, as many as " +
              fixed_text(static_cast<double>(rehearsal.steps) / static_cast<double>(whole), 1) +
              " whole training runs";
  if (const auto seeds = options.racing ? options.racing->replicates : options.replicates;
      seeds > 1) {
    text += "; of those that come to the end the best are trained with " +
            (options.racing ? "up to " : std::string()) + std::to_string(seeds) + " seeds" +
            (options.racing ? ", which is not counted" : "");
  }
  return text;
}

std::string objectives_text(const ObjectiveSet& set) {
  std::vector<std::string> texts;
  for (const auto& objective : set.objectives) {
    auto text = (objective.maximise ? "maximise " : "minimise ") + objective.name + " (" +
                objective.objective.unit + ")";
    if (objective.range) {
      const auto [low, high] = std::minmax(objective.range->best, objective.range->worst);
      text += " in [" + number_text(low) + ", " + number_text(high) + "]";
    }
    texts.push_back(std::move(text));
  }
  for (const auto& constraint : set.constraints) texts.push_back("subject to " + constraint.text());
  return join(texts);
}

/// What the mode multiplies by on the CPU, unless `exact` goes by float32.
std::string products_text(const Experiment& experiment, const Plan& plan) {
  const auto mode = experiment.evaluation.get<std::string>("numerical_mode");
  if (mode == "reference" || plan.facts.value("device", "") != "cpu") return {};
  const std::string products = nn::environment().products.at(mode + "_products");
  return mode != "exact" || products != "float32" ? ", products by " + products : "";
}

/// Where it is trained, and how much at once.
std::string device_text(const Experiment& experiment, const Plan& plan) {
  const auto threads =
      counted(experiment.evaluation.get<std::int64_t>("threads"), "thread") + " each";
  if (has_cluster(experiment)) {
    return "those of the cluster's workers, a training run per slot, " + threads;
  }
  const bool busy = !experiment.mechanisms.empty() || plan.workers == 1 ||
                    algorithms().at(experiment.algorithm).make().batches;
  return plan.facts.value("device", "") + ", workers " + std::to_string(plan.workers) +
         (plan.array_width > 1 ? ", arrays of " + std::to_string(plan.array_width) : "") + ", " +
         threads + products_text(experiment, plan) +
         (busy ? ""
               : "; " + experiment.algorithm +
                     " asks for one candidate at a time, so that after the initial population a "
                     "single worker is busy");
}

std::string time_text(const Experiment& experiment, const Plan& plan) {
  const bool races = experiment.mechanisms.empty() && evaluator_options(experiment).racing;
  return "about " + human_duration(plan.training_seconds) + " per training run, " +
         human_duration(plan.seconds) + " in all" +
         (plan.preparation.seconds > 0.0
              ? ", " + human_duration(plan.preparation.seconds) + " of it before the first"
              : "") +
         (has_cluster(experiment) ? " on one slot of a machine like this one" : "") +
         (races ? ", without races" : "");
}

using Line = std::function<void(std::string_view name, const std::string& value)>;

/// What is asked for: a pilot, listed mechanisms, or a search.
void asked_lines(const Experiment& experiment, const Plan& plan, const Line& line) {
  if (!plan.pilot.empty()) return line("pilot", plan.pilot);
  for (const auto& name : experiment.mechanisms) line("mechanism", beside(name, experiment));
  if (!experiment.mechanisms.empty()) return;
  const auto encoding = algorithms().at(experiment.algorithm).make().encoding;
  line("space", combinations_text(experiment.space.num_combinations()) +
                    " combinations of the categorical genes, " +
                    std::to_string(experiment.space.num_varying()) + " genes that vary");
  line("algorithm", experiment.algorithm + ", population " + std::to_string(experiment.population) +
                        ", encoding " + std::string(to_string(encoding)) + ", seed " +
                        std::to_string(experiment.seed));
}

/// What is trained, where and how long.
void trained_lines(const Experiment& experiment, const Plan& plan, const Line& line) {
  const bool listed = !experiment.mechanisms.empty();
  if (plan.pilot.empty()) {
    line("evaluations", listed ? plan.retest.text : evaluations_text(experiment, plan));
  }
  if (experiment.fidelity) line("rungs", rungs_text(experiment, plan));
  training_lines(experiment, plan.facts, line);
  line("device", device_text(experiment, plan));
  if (!plan.retest.text.empty() && !listed) line("re-test", plan.retest.text);
  if (plan.controls > 0) {
    line("controls", counted(plan.controls, "training run") +
                         " of the baseline without a mixer, or with a short window");
  }
  if (plan.training_seconds > 0.0) line("time", time_text(experiment, plan));
  std::vector<std::string> peaks;
  for (const auto& [stage, bytes] : plan.preparation.peaks)
    peaks.push_back("about " + human_bytes(bytes) + " in " + stage);
  if (!peaks.empty()) line("memory", join(peaks));
}

}  // namespace

std::string plan_text(const Study& study, const Plan& plan, bool with_settings) {
  const auto& experiment = study.experiment();
  std::ostringstream text;
  const Line line = [&text](std::string_view name, const std::string& value) {
    text << "  " << name << std::string(14 - name.size(), ' ') << value << '\n';
  };
  text << "plan of " << experiment.name << '\n';
  asked_lines(experiment, plan, line);
  line("objectives", objectives_text(plan.objectives));
  if (const auto& found = plan.feasibility) {
    if (found->models < found->combinations) line("models", found->models_text());
    if (!found->parts.empty()) line("constraints", found->text());
  }
  if (plan.trains) trained_lines(experiment, plan, line);
  line("folder",
       study.folder().string() + (plan.recorded ? " (continues; what of the above is among its " +
                                                      std::to_string(*plan.recorded) +
                                                      " recorded evaluations is not made again)"
                                                : ""));
  if (with_settings) {
    text << "settings\n";
    settings_lines(experiment.resolved, "", text);
  }
  return printable(text.str());
}

}  // namespace nas
