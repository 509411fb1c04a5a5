#include "study/reader/rules.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

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

/// Whether an algorithm can ask in batches: those that answer one by one have no default of one.
bool has_batches(const Facts& facts) {
  for (const auto& one : algorithms().at(facts.experiment.algorithm).description.settings) {
    if (one.name == "in_flight") return std::get<Integer>(one.default_value) == 1;
  }
  return true;
}

/// Candidates that are out at once.
Integer in_flight(const Facts& facts) {
  const auto* several = facts.find("algorithm.in_flight");
  return several != nullptr ? std::get<Integer>(*several) : 1;
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

/// Whether a condition holds, and of what, names or phrases.
struct Holding {
  Holding(bool holds) : of(holds ? 1 : 0) {}            // NOLINT(google-explicit-constructor)
  Holding(Texts subjects) : of(std::move(subjects)) {}  // NOLINT(google-explicit-constructor)

  Texts of;
};

struct Condition {
  std::string_view name;
  Holding (*holds)(const Facts&);
};

/// Conditions that a rule names, beside those that compare a setting.
constexpr Condition kConditions[] = {
    // Forms of values.
    {"workers_no_count",
     [](const Facts& f) -> Holding { return !is_count(f.text("evaluation.workers")); }},
    {"array_no_count",
     [](const Facts& f) -> Holding { return !is_count(f.text("evaluation.array")); }},
    {"unknown_device", [](const Facts& f) -> Holding { return unknown_device(f); }},
    {"devices_of_several_kinds",
     [](const Facts& f) -> Holding { return has_devices_of_several_kinds(f); }},
    {"number_as_target",
     [](const Facts& f) -> Holding {
       return std::isfinite(number_in(f.text("budget.target")).value_or(NAN));
     }},
    {"rungs_ascend",
     [](const Facts& f) -> Holding {
       return is_ascending(f.get<std::vector<Integer>>("fidelity.rungs"));
     }},
    {"epsilon_of_each",
     [](const Facts& f) -> Holding {
       return f.get<Numbers>("fidelity.epsilon").size() ==
              f.experiment.objectives.objectives.size();
     }},
    {"other_weights", [](const Facts& f) -> Holding { return other_weights(f); }},
    {"heads_divide_width",
     [](const Facts& f) -> Holding {
       return f.integer("model.width") % f.integer("model.heads") == 0;
     }},
    {"cluster", [](const Facts& f) -> Holding { return has_cluster(f.experiment); }},
    // What is wanted.
    {"several_objectives",
     [](const Facts& f) -> Holding { return f.experiment.objectives.objectives.size() > 1; }},
    {"too_few_replicates",
     [](const Facts& f) -> Holding { return too_few(f, f.integer("evaluation.replicates")); }},
    {"too_few_of_retest",
     [](const Facts& f) -> Holding { return too_few(f, f.integer("retest.replicates")); }},
    {"of_several_replicates",
     [](const Facts& f) -> Holding {
       return texts_of_wanted(f, [](const Wanted& one) {
         return one.quantity.objective.min_replicates > 1 ? one.text : "";
       });
     }},
    {"across_replicates",
     [](const Facts& f) -> Holding {
       return texts_of_wanted(f, [](const Wanted& one) {
         return one.kind == "objective" && one.quantity.objective.across ? one.text : "";
       });
     }},
    {"measured",
     [](const Facts& f) -> Holding {
       return texts_of_wanted(f, [&f](const Wanted& one) {
         return f.reads("training") && one.quantity.objective.measured ? one.quantity.name : "";
       });
     }},
    {"of_lone_trainings",
     [](const Facts& f) -> Holding {
       const auto* lone = f.experiment.objectives.needs_lone_trainings();
       return lone != nullptr ? Texts{lone->name} : Texts{};
     }},
    // The experiment.
    {"search", [](const Facts& f) -> Holding { return f.experiment.mechanisms.empty(); }},
    {"fidelity", [](const Facts& f) -> Holding { return f.experiment.fidelity.has_value(); }},
    {"training", [](const Facts& f) -> Holding { return f.reads("training"); }},
    {"baseline", [](const Facts& f) -> Holding { return f.reads("baseline"); }},
    {"problem",
     [](const Facts& f) -> Holding { return Texts{"the problem " + f.experiment.problem}; }},
    {"known_problem",
     [](const Facts& f) -> Holding { return problems().contains(f.experiment.problem); }},
    {"tabular", [](const Facts& f) -> Holding { return f.experiment.problem == "tabular"; }},
    {"device", [](const Facts& f) -> Holding { return Texts{"on the device " + f.device}; }},
    {"on_gpu", [](const Facts& f) -> Holding { return f.device == "cuda"; }},
    {"steps", [](const Facts& f) -> Holding { return f.problem->steps() > 0; }},
    {"trains",
     [](const Facts& f) -> Holding {
       return f.problem->with_training(f.experiment.training) != nullptr;
     }},
    {"expensive", [](const Facts& f) -> Holding { return f.problem->expensive(); }},
    // The algorithm.
    {"algorithm", [](const Facts& f) -> Holding { return Texts{f.experiment.algorithm}; }},
    {"batches", [](const Facts& f) -> Holding { return has_batches(f); }},
    {"in_batches", [](const Facts& f) -> Holding { return has_batches(f) && in_flight(f) == 1; }},
    {"one_by_one",
     [](const Facts& f) -> Holding {
       const auto* batch = f.find("algorithm.batch");
       return !algorithms().at(f.experiment.algorithm).make().batches ||
              (batch != nullptr && std::get<Integer>(*batch) == 1);
     }},
    {"takes_several",
     [](const Facts& f) -> Holding {
       return algorithms().at(f.experiment.algorithm).make().objectives ==
              Algorithm::Objectives::several;
     }},
    {"halving",
     [](const Facts& f) -> Holding {
       return halves_batches(parse_promote(f.text("fidelity.promote")));
     }},
    {"informed", [](const Facts& f) -> Holding { return !f.experiment.informed.empty(); }},
};

constexpr auto kHere = RuleStage::configuration;

constexpr Rule kRules[] = {
    // Single sections.
    {kHere, "model.width", "model", "training & !heads_divide_width",
     "be a multiple of {model.heads}"},
    {kHere, "evaluation.workers", "", "workers_no_count", "be auto or an integer in [1, 9999]"},
    {kHere, "evaluation.array", "", "array_no_count", "be auto or an integer in [1, 9999]"},
    {kHere, "evaluation.device", "", "unknown_device",
     "be one of auto, cpu, cuda, cuda:N, or several: cuda:0,cuda:1{}"},
    {kHere, "evaluation.device", "", "devices_of_several_kinds",
     "be devices of one kind, as cuda:0,cuda:1: results differ between kinds"},
    {kHere, "budget.target", "", "budget.target != & !number_as_target", "be a number or empty"},
    {kHere, "budget.target", "", "number_as_target & several_objectives",
     "be empty where there are several objectives"},
    {kHere, "cluster.device", "cluster", "cluster & cluster.device = mixed & measured",
     "be one model for {what is measured}, which another model has otherwise"},
    {kHere, "cluster.command", "cluster", "cluster.engine != & cluster.command != []",
     "be empty where cluster.engine is given"},
    {kHere, "evaluation.array", "",
     "evaluation.array != auto & evaluation.array != 1 & of_lone_trainings",
     "be auto or 1 for {a quantity}, which only a training run by itself has"},
    // Replicates.
    {kHere, "evaluation.replicates", "", "search & too_few_replicates",
     "be at least {what each objective and constraint needs}"},
    {kHere, "retest.replicates", "", "retest.replicates > 0 & too_few_of_retest",
     "be at least {what each objective and constraint needs}"},
    {kHere, "mechanisms", "", "!search & known_problem & !training & problem",
     "be left out: {the problem} trains nothing"},
    {kHere, "retest.replicates", "",
     "search & retest.replicates > 0 & known_problem & !training & problem",
     "be 0: {the problem} trains nothing"},
    {kHere, "retest.replicates", "", "!search & training & retest.replicates = 0",
     "be at least 1 where mechanisms are listed"},
    {kHere, "retest.until", "", "search & retest.until > 0", "be 0 unless mechanisms are listed"},
    {kHere, "evaluation.racing_replicates", "evaluation",
     "evaluation.racing_replicates > 0 & evaluation.racing_replicates <= evaluation.replicates",
     "be more than {evaluation.replicates}, or 0 for no racing"},
    {kHere, "evaluation.repeated", "evaluation",
     "evaluation.racing_replicates > 0 & evaluation.repeated != reuse",
     "be reuse where {evaluation.racing_replicates}: races decide what is evaluated again"},
    {kHere, "evaluation.racing_replicates", "evaluation",
     "evaluation.racing_replicates > 0 & across_replicates",
     "be 0 for the objective {of several replicates}, of which a single replicate has no value"},
    // Candidates at a rung are compared by one training run each, which is the same when it goes
    // on.
    {kHere, "fidelity", "fidelity", "fidelity & !search",
     "be left out where mechanisms are listed: all are trained"},
    {kHere, "fidelity.min", "fidelity", "search & fidelity.rungs = [] & fidelity.min = 0",
     "be at least 1 where fidelity.rungs is empty"},
    {kHere, "fidelity.min", "fidelity", "search & fidelity.rungs != [] & fidelity.min > 0",
     "be 0 where fidelity.rungs is given"},
    {kHere, "fidelity.eta", "fidelity", "search & fidelity.eta > 0 & fidelity.eta <= 1",
     "be 0 or more than 1"},
    {kHere, "fidelity.epsilon", "fidelity", "search & fidelity.epsilon != [] & !epsilon_of_each",
     "be empty or have a number for each objective"},
    {kHere, "fidelity.rungs", "fidelity", "search & fidelity & !rungs_ascend", "ascend"},
    {kHere, "evaluation.repeated", "fidelity evaluation",
     "search & fidelity & evaluation.repeated != reuse", "be reuse with the section fidelity"},
    {kHere, "evaluation.replicates", "fidelity evaluation",
     "search & fidelity & evaluation.replicates > 1 & evaluation.racing_replicates > 0",
     "be 1 with the section fidelity and evaluation.racing_replicates: races decide who is trained "
     "with further seeds"},
    {kHere, "fidelity", "fidelity", "search & fidelity & of_several_replicates",
     "be left out for {a quantity}, of which a single replicate has no value"},
    {kHere, "problem.mode", "fidelity problem", "search & fidelity & problem.mode = noisy",
     "be paired or mean with the section fidelity: rungs compare equal seeds"},
    {kHere, "training.early_stop_after", "fidelity",
     "search & fidelity & training & training.early_stop_after > 0",
     "be 0 with the section fidelity: rungs decide who is trained on"},
    {kHere, "fidelity.promote", "fidelity algorithm", "search & fidelity & !halving & in_batches",
     "be successive_halving or hyperband unless algorithm.in_flight > 1: candidates go on while "
     "others are out"},
    {kHere, "fidelity.promote", "fidelity algorithm", "search & fidelity & halving & !in_batches",
     "be asha or pasha with algorithm.in_flight: nothing waits for a batch"},
    {kHere, "fidelity.promote", "fidelity algorithm", "search & fidelity & in_batches & one_by_one",
     "be asha, with algorithm.in_flight > 1, where candidates are asked for one at a time: of a "
     "batch of one nobody is the best"},
    {kHere, "fidelity", "fidelity algorithm", "search & fidelity & in_batches & measured",
     "be left out for {what is measured}, which is measured while nothing is trained"},
    // What is out while others are asked for goes with neither races nor timings.
    {kHere, "evaluation.racing_replicates", "algorithm evaluation",
     "search & !batches & evaluation.racing_replicates > 0 & algorithm",
     "be 0 with {an algorithm}, which asks without batches: a race is between candidates of one"},
    {kHere, "algorithm.in_flight", "algorithm evaluation",
     "search & batches & algorithm.in_flight > 1 & evaluation.racing_replicates > 0",
     "be 1 where {evaluation.racing_replicates}: a race is between candidates of a batch"},
    {kHere, "algorithm.in_flight", "algorithm", "search & algorithm.in_flight > 1 & measured",
     "be 1 for {what is measured}, which is measured while nothing is trained"},
    {kHere, "algorithm.informed", "algorithm space model",
     "heads_divide_width & informed & !baseline & problem",
     "be empty: {the problem} searches no mechanisms"},
    {kHere, "algorithm.informed_share", "algorithm space model",
     "heads_divide_width & !informed & algorithm.informed_share > 0",
     "be 0 where algorithm.informed names no mechanism"},
    {kHere, "algorithm.informed_share", "algorithm space model",
     "heads_divide_width & informed & baseline & algorithm.informed_share = 0",
     "be greater than 0 where algorithm.informed names mechanisms: the share of the initial "
     "population that these are"},
    // How several objectives become one.
    {RuleStage::algorithm, "algorithm.weights", "",
     "algorithm.decomposition = none & algorithm.weights != []",
     "be empty where algorithm.decomposition is none"},
    {RuleStage::algorithm, "algorithm.decomposition", "",
     "algorithm.decomposition != none & !several_objectives", "be none for one objective"},
    {RuleStage::algorithm, "algorithm.decomposition", "",
     "algorithm.decomposition != none & several_objectives & takes_several & algorithm",
     "be none: {the algorithm} needs several objectives"},
    {RuleStage::algorithm, "algorithm.weights", "",
     "algorithm.decomposition != none & several_objectives & !takes_several & other_weights",
     "be {as many} numbers >= 0, one per objective, not all 0"},
    // Comparisons.
    {RuleStage::comparison, "problem.type", "", "!tabular",
     "be tabular: a comparison trains nothing"},
    {RuleStage::comparison, "algorithms.order", "", "algorithms.order = arrival",
     "be virtual in a comparison: a table's answers take no time"},
    {RuleStage::comparison, "evaluation.racing_replicates", "", "evaluation.racing_replicates > 0",
     "be 0 in a comparison: a table answers without races"},
    {RuleStage::comparison, "algorithms.fidelity.audit", "", "algorithms.fidelity.audit > 0",
     "be 0 in a comparison, which knows all ends"},
    {RuleStage::comparison, "budget.evaluations", "", "budget.evaluations = 0",
     "be at least 1: the training runs of a search"},
    {RuleStage::comparison, "budget.seconds", "", "budget.seconds > 0",
     "be 0: a comparison limits evaluations, asks, train_seconds and train_steps"},
    {RuleStage::comparison, "budget.gpu_seconds", "", "budget.gpu_seconds > 0",
     "be 0: a comparison limits evaluations, asks, train_seconds and train_steps"},
    // What shows once the problem is made.
    {RuleStage::set_up, "retest.replicates", "", "retest.replicates > 0 & !trains & problem",
     "be 0: {the problem} trains nothing"},
    {RuleStage::set_up, "budget.gpu_seconds", "", "budget.gpu_seconds > 0 & !on_gpu & device",
     "be 0 {where training is not on a GPU}: it spends none"},
    {RuleStage::set_up, "budget.train_steps", "", "budget.train_steps > 0 & !steps & problem",
     "be 0 for {a problem without steps}: it takes none"},
    {RuleStage::set_up, "budget.train_seconds", "",
     "budget.train_seconds > 0 & !steps & !expensive & problem",
     "be 0 for {a problem without training}: it takes none"},
};

/// The number that a value is or a text says.
std::optional<double> number_of(const Value& value) {
  if (const auto* integer = std::get_if<Integer>(&value)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

/// "PATH OPERATOR VALUE", of numbers or texts, where VALUE may be a path, too.
bool compares(std::string_view text, const Facts& facts) {
  const auto blank = text.find(' ');
  const auto* left = facts.find(text.substr(0, blank));
  if (left == nullptr) return false;
  const auto rest = text.substr(blank + 1);
  const auto end = std::min(rest.find(' '), rest.size());
  const auto sign = rest.substr(0, end);
  const auto literal = rest.substr(std::min(end + 1, rest.size()));
  const auto* other = facts.find(literal);
  const auto a = number_of(*left);
  if (!a) {
    const bool same = to_text(*left) == (other != nullptr ? to_text(*other) : std::string(literal));
    return same == (sign == "=");
  }
  const auto b = other != nullptr ? number_of(*other).value() : number_in(literal).value();
  if (sign == "=") return *a == b;
  if (sign == "!=") return *a != b;
  return sign == ">" ? *a > b : *a <= b;
}

Texts holds(std::string_view condition, const Facts& facts);

/// The same of one of the conditions that "&" joins.
Texts one_holds(std::string_view text, const Facts& facts) {
  if (text.starts_with('!')) {
    return one_holds(text.substr(1), facts).empty() ? Texts{""} : Texts{};
  }
  if (text.find(' ') != std::string_view::npos) {
    return compares(text, facts) ? Texts{""} : Texts{};
  }
  const auto* const named = std::find_if(std::begin(kConditions), std::end(kConditions),
                                         [text](const Condition& one) { return one.name == text; });
  return named->holds(facts).of;
}

/// @return what a condition holds of, names or phrases; one that is empty where it holds of nothing
/// in particular; none where it does not hold.
Texts holds(std::string_view condition, const Facts& facts) {
  constexpr std::string_view kAnd = " & ";
  Texts subjects{""};
  while (!condition.empty()) {
    const auto end = std::min(condition.find(kAnd), condition.size());
    const auto found = one_holds(condition.substr(0, end), facts);
    if (found.empty()) return {};
    if (found != Texts{""}) subjects = found;
    condition.remove_prefix(std::min(end + kAnd.size(), condition.size()));
  }
  return subjects;
}

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

bool RuleFacts::reads(const std::string& section) const { return contains(sections, section); }

std::string Breach::text() const {
  return value ? setting + " = " + *value + ", " + must : setting + ": " + must;
}

std::span<const Rule> rules() { return kRules; }

std::vector<Breach> breaches(RuleStage stage, const RuleFacts& facts) {
  std::vector<Breach> found;
  for (const auto& rule : rules()) {
    if (rule.stage != stage || is_mistaken(rule, facts)) continue;
    for (const auto& subject : holds(rule.broken, facts)) {
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
