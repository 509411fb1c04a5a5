#include "study/reader/rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <arpa/inet.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "evaluation/device_pool.hpp"
#include "search/algorithm.hpp"
#include "search/rungs.hpp"
#include "study/reader/engines.hpp"

namespace nas {

namespace {

using Facts = RuleFacts;
using Integer = std::int64_t;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

bool contains(const Texts& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool is_digits(std::string_view text) {
  constexpr std::size_t kMaxDigits = 4;
  return !text.empty() && text.size() <= kMaxDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A number of workers, or of trainings in an array.
bool is_count(const std::string& text) {
  return text == "auto" || (is_digits(text) && text.front() != '0');
}

/// Whether a text is an address, or can be the name of a machine.
bool is_host(const std::string& text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), address.data()) == 1 ||
         (text.find_first_not_of(kLetters) == std::string::npos &&
          text.find_first_not_of("0123456789.") != std::string::npos);
}

/// The first name that is no device, as a hint.
Texts unknown_device(const Facts& facts) {
  static const Texts kDevices{"auto", "cpu", "cuda"};
  for (const auto& one : device_list(facts.text("evaluation.device"))) {
    const bool numbered = one.rfind("cuda:", 0) == 0 && is_digits(one.substr(5));
    if (!numbered && !contains(kDevices, one)) return {did_you_mean(one, kDevices)};
  }
  return {};
}

bool has_devices_of_several_kinds(const Facts& facts) {
  const auto devices = device_list(facts.text("evaluation.device"));
  const auto kind_of = [](const std::string& one) { return one.substr(0, one.find(':')); };
  return devices.size() > 1 && unknown_device(facts).empty() &&
         std::any_of(devices.begin(), devices.end(), [&](const std::string& one) {
           return one == "auto" || kind_of(one) != kind_of(devices.front());
         });
}

/// An objective, or what a constraint is on.
struct Wanted {
  const ChosenObjective& quantity;
  std::string kind;  ///< "objective", "constraint"
  std::string text;  ///< "perplexity", "flops <= 4e+06"
};

std::vector<Wanted> wanted(const Facts& facts) {
  std::vector<Wanted> all;
  for (const auto& one : facts.experiment.objectives.objectives) {
    all.push_back({one, "objective", one.name});
  }
  for (const auto& one : facts.experiment.objectives.constraints) {
    all.push_back({one.quantity, "constraint", one.text()});
  }
  return all;
}

/// Texts of those that `text` says something of.
Texts texts_of_wanted(const Facts& facts, const std::function<std::string(const Wanted&)>& text) {
  Texts texts;
  for (const auto& one : wanted(facts)) {
    if (auto own = text(one); !own.empty()) texts.push_back(std::move(own));
  }
  return texts;
}

/// What needs more replicates: "2 for the objective seed_sd".
Texts too_few(const Facts& facts, Integer replicates) {
  return texts_of_wanted(facts, [replicates](const Wanted& one) {
    const auto least = one.quantity.objective.min_replicates;
    if (replicates >= least) return std::string();
    return std::to_string(least) + " for the " + one.kind + " " + one.text;
  });
}

/// How many weights a decomposition needs, where those that are given do not fit.
Texts other_weights(const Facts& facts) {
  const auto& weights = facts.get<Numbers>("algorithm.weights");
  const auto number = facts.experiment.objectives.objectives.size();
  const auto is_positive = [](double weight) { return weight > 0.0; };
  const bool right =
      weights.size() == number && std::any_of(weights.begin(), weights.end(), is_positive);
  return weights.empty() || right ? Texts{} : Texts{std::to_string(number)};
}

bool is_ascending(const std::vector<Integer>& steps) {
  return std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) == steps.end();
}

/// A number that a setting has, else NaN, which compares to nothing.
double number(const Facts& f, std::string_view path) {
  const auto* value = f.find(path);
  if (value == nullptr) return NAN;
  if (const auto* integer = std::get_if<Integer>(value)) return static_cast<double>(*integer);
  return std::get<double>(*value);
}

/// Whether a setting is there, and has a value, or another one.
bool has(const Facts& f, std::string_view path, std::string_view text) {
  const auto* value = f.find(path);
  return value != nullptr && to_text(*value) == text;
}
bool has_other(const Facts& f, std::string_view path, std::string_view text) {
  const auto* value = f.find(path);
  return value != nullptr && to_text(*value) != text;
}

bool is_search(const Facts& f) { return f.experiment.mechanisms.empty(); }
bool has_rungs(const Facts& f) { return is_search(f) && f.experiment.fidelity.has_value(); }
bool trains(const Facts& f) { return f.reads("training"); }
bool trains_nothing(const Facts& f) {
  return problems().contains(f.experiment.problem) && !trains(f);
}
bool has_several_objectives(const Facts& f) {
  return f.experiment.objectives.objectives.size() > 1;
}
bool target_is_number(const Facts& f) {
  return std::isfinite(number_in(f.text("budget.target")).value_or(NAN));
}
bool heads_fit(const Facts& f) { return f.integer("model.width") % f.integer("model.heads") == 0; }
bool is_informed(const Facts& f) { return !f.experiment.informed.empty(); }
bool races(const Facts& f) { return number(f, "evaluation.racing_replicates") > 0; }
bool retests(const Facts& f) { return number(f, "retest.replicates") > 0; }
bool halves(const Facts& f) { return halves_batches(parse_promote(f.text("fidelity.promote"))); }

/// Whether an algorithm can ask in batches: those that answer one by one have no default of one.
bool has_batches(const Facts& f) {
  for (const auto& one : algorithms().at(f.experiment.algorithm).description.settings) {
    if (one.name == "in_flight") return std::get<Integer>(one.default_value) == 1;
  }
  return true;
}
bool asks_in_batches(const Facts& f) {
  return has_batches(f) && !(number(f, "algorithm.in_flight") > 1);
}
bool asks_one_by_one(const Facts& f) {
  return !algorithms().at(f.experiment.algorithm).make().batches ||
         number(f, "algorithm.batch") == 1;
}
bool takes_several_objectives(const Facts& f) {
  return algorithms().at(f.experiment.algorithm).make().objectives ==
         Algorithm::Objectives::several;
}
bool decomposes(const Facts& f) { return has_other(f, "algorithm.decomposition", "none"); }

// What breaks a rule.

Texts problem(const Facts& f) { return {"the problem " + f.experiment.problem}; }
Texts algorithm(const Facts& f) { return {f.experiment.algorithm}; }
Texts device(const Facts& f) { return {"on the device " + f.device}; }
Texts too_few_replicates(const Facts& f) { return too_few(f, f.integer("evaluation.replicates")); }
Texts too_few_of_retest(const Facts& f) { return too_few(f, f.integer("retest.replicates")); }
Texts of_several_replicates(const Facts& f) {
  return texts_of_wanted(f, [](const Wanted& one) {
    return one.quantity.objective.min_replicates > 1 ? one.text : "";
  });
}
Texts across_replicates(const Facts& f) {
  return texts_of_wanted(f, [](const Wanted& one) {
    return one.kind == "objective" && one.quantity.objective.across ? one.text : "";
  });
}
Texts measured(const Facts& f) {
  return texts_of_wanted(f, [&f](const Wanted& one) {
    return trains(f) && one.quantity.objective.measured ? one.quantity.name : "";
  });
}
Texts of_lone_trainings(const Facts& f) {
  const auto* lone = f.experiment.objectives.needs_lone_trainings();
  return lone != nullptr ? Texts{lone->name} : Texts{};
}

constexpr auto kHere = RuleStage::configuration;
using F = const Facts&;

constexpr Rule kRules[] = {
    // Single sections.
    {kHere, "model.width", "model", [](F f) { return trains(f) && !heads_fit(f); },
     "be a multiple of {model.heads}"},
    {kHere, "training.micro_batch", "training",
     [](F f) {
       return trains(f) && number(f, "training.micro_batch") >= number(f, "training.batch_size");
     },
     "be a part of {training.batch_size}, or 0 for all at once"},
    {kHere, "evaluation.workers", "", [](F f) { return !is_count(f.text("evaluation.workers")); },
     "be auto or an integer in [1, 9999]"},
    {kHere, "evaluation.array", "", [](F f) { return !is_count(f.text("evaluation.array")); },
     "be auto or an integer in [1, 9999]"},
    {kHere, "evaluation.device", "", [](F) { return true; },
     "be one of auto, cpu, cuda, cuda:N, or several: cuda:0,cuda:1{}", unknown_device},
    {kHere, "evaluation.device", "", [](F f) { return has_devices_of_several_kinds(f); },
     "be devices of one kind, as cuda:0,cuda:1: results differ between kinds"},
    {kHere, "budget.target", "",
     [](F f) { return has_other(f, "budget.target", "") && !target_is_number(f); },
     "be a number or empty"},
    {kHere, "budget.target", "",
     [](F f) { return target_is_number(f) && has_several_objectives(f); },
     "be empty where there are several objectives"},
    {kHere, "cluster.device", "cluster",
     [](F f) { return has_cluster(f.experiment) && has(f, "cluster.device", "mixed"); },
     "be one model for {what is measured}, which another model has otherwise", measured},
    {kHere, "cluster.command", "cluster",
     [](F f) {
       return has_other(f, "cluster.engine", "") && has_other(f, "cluster.command", "[]");
     },
     "be empty where cluster.engine is given"},
    {kHere, "cluster.command", "cluster",
     [](F f) {
       const auto* command = f.find("cluster.command");
       const auto* words = command != nullptr ? std::get_if<Texts>(command) : nullptr;
       return words != nullptr && !words->empty() && words->front().empty();
     },
     "begin with the name of a program"},
    {kHere, "cluster.scheduler", "cluster",
     [](F f) {
       return has_other(f, "cluster.scheduler", "auto") &&
              f.text("cluster.scheduler").find("://") == std::string::npos;
     },
     "be auto or an address: tls://host:port"},
    {kHere, "cluster.listen", "cluster",
     [](F f) { return f.find("cluster.listen") != nullptr && !is_host(f.text("cluster.listen")); },
     "be auto, an address of IPv4 or IPv6, or the name of a machine"},
    {kHere, "evaluation.array", "",
     [](F f) {
       return has_other(f, "evaluation.array", "auto") && has_other(f, "evaluation.array", "1");
     },
     "be auto or 1 for {a quantity}, which only a training run by itself has", of_lone_trainings},
    // Replicates.
    {kHere, "evaluation.replicates", "", [](F f) { return is_search(f); },
     "be at least {what each objective and constraint needs}", too_few_replicates},
    {kHere, "retest.replicates", "", [](F f) { return retests(f); },
     "be at least {what each objective and constraint needs}", too_few_of_retest},
    {kHere, "mechanisms", "", [](F f) { return !is_search(f) && trains_nothing(f); },
     "be left out: {the problem} trains nothing", problem},
    {kHere, "retest.replicates", "",
     [](F f) { return !is_search(f) && trains(f) && number(f, "retest.replicates") == 0; },
     "be at least 1 where mechanisms are listed"},
    {kHere, "retest.until", "", [](F f) { return is_search(f) && number(f, "retest.until") > 0; },
     "be 0 unless mechanisms are listed"},
    {kHere, "evaluation.racing_replicates", "evaluation",
     [](F f) {
       return races(f) &&
              number(f, "evaluation.racing_replicates") <= number(f, "evaluation.replicates");
     },
     "be more than {evaluation.replicates}, or 0 for no racing"},
    {kHere, "evaluation.repeated", "evaluation",
     [](F f) { return races(f) && has_other(f, "evaluation.repeated", "reuse"); },
     "be reuse where {evaluation.racing_replicates}: races decide what is evaluated again"},
    {kHere, "evaluation.racing_replicates", "evaluation", [](F f) { return races(f); },
     "be 0 for the objective {of several replicates}, of which a single replicate has no value",
     across_replicates},
    // Candidates at a rung are compared by one training run each, which is the same when it goes
    // on.
    {kHere, "fidelity", "fidelity",
     [](F f) { return f.experiment.fidelity.has_value() && !is_search(f); },
     "be left out where mechanisms are listed: all are trained"},
    {kHere, "fidelity.min", "fidelity",
     [](F f) {
       return is_search(f) && has(f, "fidelity.rungs", "[]") && number(f, "fidelity.min") == 0;
     },
     "be at least 1 where fidelity.rungs is empty"},
    {kHere, "fidelity.min", "fidelity",
     [](F f) {
       return is_search(f) && has_other(f, "fidelity.rungs", "[]") && number(f, "fidelity.min") > 0;
     },
     "be 0 where fidelity.rungs is given"},
    {kHere, "fidelity.eta", "fidelity",
     [](F f) {
       return is_search(f) && number(f, "fidelity.eta") > 0 && number(f, "fidelity.eta") <= 1;
     },
     "be 0 or more than 1"},
    {kHere, "fidelity.epsilon", "fidelity",
     [](F f) {
       return is_search(f) && has_other(f, "fidelity.epsilon", "[]") &&
              f.get<Numbers>("fidelity.epsilon").size() !=
                  f.experiment.objectives.objectives.size();
     },
     "be empty or have a number for each objective"},
    {kHere, "fidelity.rungs", "fidelity",
     [](F f) {
       return has_rungs(f) && !is_ascending(f.get<std::vector<Integer>>("fidelity.rungs"));
     },
     "ascend"},
    {kHere, "evaluation.repeated", "fidelity evaluation",
     [](F f) { return has_rungs(f) && has_other(f, "evaluation.repeated", "reuse"); },
     "be reuse with the section fidelity"},
    {kHere, "evaluation.replicates", "fidelity evaluation",
     [](F f) { return has_rungs(f) && number(f, "evaluation.replicates") > 1 && races(f); },
     "be 1 with the section fidelity and evaluation.racing_replicates: races decide what is "
     "trained with further seeds"},
    {kHere, "fidelity", "fidelity", [](F f) { return has_rungs(f); },
     "be left out for {a quantity}, of which a single replicate has no value",
     of_several_replicates},
    {kHere, "problem.mode", "fidelity problem",
     [](F f) { return has_rungs(f) && has(f, "problem.mode", "noisy"); },
     "be paired or mean with the section fidelity: rungs compare equal seeds"},
    {kHere, "training.early_stop_after", "fidelity",
     [](F f) { return has_rungs(f) && trains(f) && number(f, "training.early_stop_after") > 0; },
     "be 0 with the section fidelity: rungs decide what is trained on"},
    {kHere, "fidelity.promote", "fidelity algorithm",
     [](F f) { return has_rungs(f) && !halves(f) && asks_in_batches(f); },
     "be successive_halving or hyperband unless algorithm.in_flight > 1: candidates go on while "
     "others are out"},
    {kHere, "fidelity.promote", "fidelity algorithm",
     [](F f) { return has_rungs(f) && halves(f) && !asks_in_batches(f); },
     "be asha or pasha with algorithm.in_flight: nothing waits for a batch"},
    {kHere, "fidelity.promote", "fidelity algorithm",
     [](F f) { return has_rungs(f) && asks_in_batches(f) && asks_one_by_one(f); },
     "be asha, with algorithm.in_flight > 1, where candidates are asked for one at a time: a "
     "batch of one has no best candidate"},
    {kHere, "fidelity", "fidelity algorithm",
     [](F f) { return has_rungs(f) && asks_in_batches(f); },
     "be left out for {what is measured}, which is measured while nothing is trained", measured},
    // What is out while others are asked for goes with neither races nor timings.
    {kHere, "evaluation.racing_replicates", "algorithm evaluation",
     [](F f) { return is_search(f) && !has_batches(f) && races(f); },
     "be 0 with {an algorithm}, which asks without batches: a race is between candidates of one",
     algorithm},
    {kHere, "algorithm.in_flight", "algorithm evaluation",
     [](F f) {
       return is_search(f) && has_batches(f) && number(f, "algorithm.in_flight") > 1 && races(f);
     },
     "be 1 where {evaluation.racing_replicates}: a race is between candidates of a batch"},
    {kHere, "algorithm.in_flight", "algorithm",
     [](F f) { return is_search(f) && number(f, "algorithm.in_flight") > 1; },
     "be 1 for {what is measured}, which is measured while nothing is trained", measured},
    {kHere, "algorithm.informed", "algorithm space model",
     [](F f) { return heads_fit(f) && is_informed(f) && !f.reads("baseline"); },
     "be empty: {the problem} searches no mechanisms", problem},
    {kHere, "algorithm.informed_share", "algorithm space model",
     [](F f) {
       return heads_fit(f) && !is_informed(f) && number(f, "algorithm.informed_share") > 0;
     },
     "be 0 where algorithm.informed names no mechanism"},
    {kHere, "algorithm.informed_share", "algorithm space model",
     [](F f) {
       return heads_fit(f) && is_informed(f) && f.reads("baseline") &&
              number(f, "algorithm.informed_share") == 0;
     },
     "be greater than 0 where algorithm.informed names mechanisms: the share of the initial "
     "population that these are"},
    // How several objectives become one.
    {RuleStage::algorithm, "algorithm.weights", "",
     [](F f) {
       return has(f, "algorithm.decomposition", "none") && has_other(f, "algorithm.weights", "[]");
     },
     "be empty where algorithm.decomposition is none"},
    {RuleStage::algorithm, "algorithm.decomposition", "",
     [](F f) { return decomposes(f) && !has_several_objectives(f); }, "be none for one objective"},
    {RuleStage::algorithm, "algorithm.decomposition", "",
     [](F f) { return decomposes(f) && has_several_objectives(f) && takes_several_objectives(f); },
     "be none: {the algorithm} needs several objectives", algorithm},
    {RuleStage::algorithm, "algorithm.weights", "",
     [](F f) { return decomposes(f) && has_several_objectives(f) && !takes_several_objectives(f); },
     "be {as many} numbers >= 0, one per objective, not all 0", other_weights},
    // Comparisons.
    {RuleStage::comparison, "problem.type", "",
     [](F f) { return !f.experiment.problem.starts_with("tabular"); },
     "be tabular: a comparison trains nothing"},
    {RuleStage::comparison, "algorithms.order", "",
     [](F f) { return has(f, "algorithms.order", "arrival"); },
     "be virtual in a comparison: a table's answers take no time"},
    {RuleStage::comparison, "evaluation.racing_replicates", "", [](F f) { return races(f); },
     "be 0 in a comparison: a table answers without races"},
    {RuleStage::comparison, "budget.evaluations", "",
     [](F f) { return number(f, "budget.evaluations") == 0; },
     "be at least 1: the training runs of a search"},
    {RuleStage::comparison, "budget.seconds", "",
     [](F f) { return number(f, "budget.seconds") > 0; },
     "be 0: a comparison limits evaluations, asks, train_seconds and train_steps"},
    {RuleStage::comparison, "budget.gpu_seconds", "",
     [](F f) { return number(f, "budget.gpu_seconds") > 0; },
     "be 0: a comparison limits evaluations, asks, train_seconds and train_steps"},
    // What shows once the problem is made.
    {RuleStage::set_up, "retest.replicates", "",
     [](F f) { return retests(f) && f.problem->with_training(f.experiment.training) == nullptr; },
     "be 0: {the problem} trains nothing", problem},
    {RuleStage::set_up, "budget.gpu_seconds", "",
     [](F f) { return number(f, "budget.gpu_seconds") > 0 && f.device != "cuda"; },
     "be 0 {where training is not on a GPU}: it spends none", device},
    {RuleStage::set_up, "budget.train_steps", "",
     [](F f) { return number(f, "budget.train_steps") > 0 && f.problem->steps() == 0; },
     "be 0 for {a problem without steps}: it takes none", problem},
    {RuleStage::set_up, "budget.train_seconds", "",
     [](F f) {
       return number(f, "budget.train_seconds") > 0 && f.problem->steps() == 0 &&
              !f.problem->expensive();
     },
     "be 0 for {a problem without training}: it takes none", problem},
};

/// A text with what stands in braces replaced.
std::string filled(std::string_view text, const std::function<std::string(std::string_view)>& in) {
  std::string filled;
  while (true) {
    const auto open = text.find('{');
    if (open == std::string_view::npos) return filled + std::string(text);
    const auto close = text.find('}', open);
    filled += std::string(text.substr(0, open)) + in(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
}

/// A setting that has an effect only where another is not off.
struct Dependent {
  std::string_view setting, at_default, owner, off;
};

constexpr Dependent kDependents[] = {
    {"training.early_stop_factor", "2", "training.early_stop_after", "0"},
    {"evaluation.racing_elites", "3", "evaluation.racing_replicates", "0"},
    {"evaluation.racing_confidence", "0.95", "evaluation.racing_replicates", "0"},
    {"retest.top", "3", "retest.replicates", "0"},
    {"retest.confidence", "0.95", "retest.replicates", "0"},
    {"cluster.scheduler", "auto", "cluster.engine", ""},
    {"cluster.listen", "auto", "cluster.engine", ""},
    {"cluster.device", "auto", "cluster.engine", ""},
    {"cluster.silence", "60", "cluster.engine", ""},
    {"cluster.grace", "25", "cluster.engine", ""},
};

bool is_mistaken(const Rule& rule, const Facts& facts) {
  const auto sections = " " + std::string(rule.sections) + " ";
  return std::any_of(facts.mistaken.begin(), facts.mistaken.end(), [&](const auto& section) {
    return sections.find(" " + section + " ") != std::string::npos;
  });
}

Breach breach(const Rule& rule, const Facts& facts, const std::string& subject) {
  const auto in = [&](std::string_view name) {
    const auto* value = facts.find(name);
    return value != nullptr ? std::string(name) + " = " + to_text(*value) : subject;
  };
  Breach breach{std::string(rule.setting), std::nullopt, "must " + filled(rule.must, in)};
  if (rule.setting == "problem.type") {
    breach.value = facts.experiment.problem;
  } else if (const auto* value = facts.find(rule.setting)) {
    breach.value = to_text(*value);
  }
  return breach;
}

}  // namespace

const Value* RuleFacts::find(std::string_view path) const {
  const auto dot = path.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto& all = experiment;
  const std::map<std::string_view, const Parameters*> known{
      {"problem", &all.problem_settings},
      {"model", &all.model},
      {"training", &all.training},
      {"evaluation", &all.evaluation},
      {"budget", &all.budget},
      {"cluster", &all.cluster},
      {"retest", &all.retest},
      {"algorithm", &all.algorithm_settings},
      {"algorithms", &all.algorithm_settings},  // of nas-compare
      {"fidelity", all.fidelity ? &*all.fidelity : nullptr},
      {"algorithms.fidelity", all.fidelity ? &*all.fidelity : nullptr}};
  const auto section = known.find(path.substr(0, dot));
  if (section == known.end() || section->second == nullptr) return nullptr;
  const auto& values = section->second->values();
  const auto value = values.find(path.substr(dot + 1));
  return value != values.end() ? &value->second : nullptr;
}

std::vector<std::string> without_effect(const RuleFacts& facts) {
  std::vector<std::string> texts;
  for (const auto& [setting, at_default, owner, off] : kDependents) {
    if (!has_other(facts, setting, at_default) || !has(facts, owner, off)) continue;
    if (off.empty() && has_cluster(facts.experiment)) continue;
    texts.push_back(std::string(setting) + " = " + to_text(*facts.find(setting)) +
                    " has no effect where " + std::string(owner) + " is " +
                    (off.empty() ? "not given" : std::string(off)));
  }
  return texts;
}

bool RuleFacts::reads(const std::string& section) const { return contains(sections, section); }

std::string Breach::text() const {
  return value ? setting + " = " + *value + ", " + must : setting + ": " + must;
}

std::span<const Rule> rules() { return kRules; }

std::vector<Breach> breaches(RuleStage stage, const RuleFacts& facts) {
  std::vector<Breach> found;
  for (const auto& rule : rules()) {
    if (rule.stage != stage || is_mistaken(rule, facts)) continue;
    if (!rule.broken(facts)) continue;
    for (const auto& subject : rule.by != nullptr ? rule.by(facts) : Texts{""}) {
      found.push_back(breach(rule, facts, subject));
    }
  }
  return found;
}

std::vector<std::string> rules_of(std::string_view path) {
  std::vector<std::string> texts;
  const auto as_it_is = [](std::string_view name) { return std::string(name); };
  for (const auto& rule : rules()) {
    if (rule.setting != path) continue;
    auto text = "must " + filled(rule.must, as_it_is);
    if (!contains(texts, text)) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace nas
