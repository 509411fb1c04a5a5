#include "python/functions.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"

namespace nas::python {

namespace {

namespace py = pybind11;

/// The functions that are registered; the caller holds the interpreter's lock.
py::module_ functions() { return py::module_::import("attnas.functions"); }

std::set<std::string>& names_of(const std::string& kind) {
  static std::map<std::string, std::set<std::string>> names;
  return names[kind];
}

Setting version_setting() {
  return {.name = "version",
          .default_value = std::string(),
          .help = "of the Python function; empty: the one that is registered"};
}

/// @param registry  of the kind.
template <class AnyRegistry, class Make>
void add(AnyRegistry& registry, const std::string& name, const std::string& summary, Make make) {
  auto& names = names_of(registry.kind());
  if (names.contains(name)) return;
  if (registry.contains(name)) {
    throw InputError(registry.kind() + " '" + name +
                     "': attnas has one of this name, must have another");
  }
  names.insert(name);
  registry.add({.key = name, .summary = summary, .settings = {version_setting()}, .file = "Python"},
               std::move(make));
}

nlohmann::json genotype_json(const Genotype& genotype) {
  auto json = nlohmann::json::object();
  for (const auto& [gene, value] : genotype.values()) {
    std::visit([&json, &name = gene](const auto& chosen) { json[name] = chosen; }, value);
  }
  return json;
}

/// What an objective that needs no training is asked of.
nlohmann::json candidate_json(const Subject& subject) {
  const auto& model = subject.architecture;
  return {{"name", to_string(model)},
          {"genes", genotype_json(genotype_of(model))},
          {"parameters", num_parameters(model)},
          {"flops", forward_flops(model)},
          {"layers", model.layers},
          {"width", model.width},
          {"heads", model.heads},
          {"context", model.context},
          {"vocabulary", model.vocabulary},
          {"device", subject.device},
          {"threads", subject.threads}};
}

/// Calls the function of an objective.
double value_of(const std::string& name, const nlohmann::json& argument) {
  const py::gil_scoped_acquire lock;
  return functions().attr("value")(name, argument.dump()).cast<double>();
}

/// The same of what is looked at before training, where a value that cannot be compared fails the
/// candidate.
double finite_value_of(const std::string& name, const Subject& subject) {
  const double value = value_of(name, candidate_json(subject));
  if (!std::isfinite(value)) {
    throw InputError("objective " + name + " = " + std::to_string(value) + ", must be finite");
  }
  return value;
}

Objective make_objective(const std::string& name) {
  const py::gil_scoped_acquire lock;
  const py::object function = functions().attr("objectives")[name.c_str()];
  Objective objective{.unit = function.attr("unit").cast<std::string>(),
                      .maximise = function.attr("maximise").cast<bool>()};
  const auto source = function.attr("source").cast<std::string>();
  if (source == "analytic") {
    objective.analytic = [name](const Subject& subject) { return finite_value_of(name, subject); };
  } else if (source == "measured") {
    objective.measured = [name](const Subject& subject) {
      return nlohmann::json{{"value", finite_value_of(name, subject)}};
    };
  } else {
    objective.trained = [name](const Evaluation& evaluation) {
      auto record = nlohmann::json(evaluation);
      record.erase("identity");
      return value_of(name, record);
    };
  }
  using Ends = std::optional<std::pair<double, double>>;
  if (const auto ends = function.attr("range").cast<Ends>()) {
    objective.range = [range = Range{.best = ends->first, .worst = ends->second}](
                          const nlohmann::json& /*facts*/) { return range; };
  }
  return objective;
}

thread_local const SearchSpace* searched_space = nullptr;

/// A function of Python as a pagmo algorithm.
class PythonSearch {
 public:
  explicit PythonSearch(std::string name = {}, std::uint32_t seed = 42)
      : name_(std::move(name)), seed_(seed) {}

  [[nodiscard]] pagmo::population evolve(const pagmo::population& population) const {
    if (searched_space == nullptr) return rehearsed(population);
    Asking asking(*searched_space, population);
    try {
      const py::gil_scoped_acquire lock;
      functions().attr("search")(name_, py::cast(&asking, py::return_value_policy::reference),
                                 seed_);
    } catch (const py::error_already_set&) {
      if (!asking.ended_by()) throw;
    }
    if (asking.ended_by()) std::rethrow_exception(asking.ended_by());
    return asking.best();
  }
  [[nodiscard]] std::string get_name() const { return name_; }

  template <class Archive>
  void serialize(Archive& archive, unsigned /*version*/) {
    archive& name_& seed_;
  }

 private:
  /// A random search in its place: as many candidates as the budget has, which is all that can be
  /// known of a function.
  [[nodiscard]] pagmo::population rehearsed(const pagmo::population& population) const {
    std::mt19937 engine(seed_);
    AskedPoints asked(population);
    UnseenPoints unseen(population.get_problem(), population.get_x());
    for (auto point = unseen.draw(engine); !point.empty(); point = unseen.draw(engine)) {
      asked.ask({std::move(point)});
    }
    return asked.best();
  }

  std::string name_;
  std::uint32_t seed_;
};

Algorithm make_algorithm(const std::string& name) {
  const py::gil_scoped_acquire lock;
  const py::object function = functions().attr("algorithms")[name.c_str()];
  const auto objectives = function.attr("objectives").cast<std::string>();
  return {
      .objectives = objectives == "one"       ? Algorithm::Objectives::one
                    : objectives == "several" ? Algorithm::Objectives::several
                                              : Algorithm::Objectives::any,
      .batches = true,
      .make = [name](const Parameters& /*settings*/, const SearchFacts& /*facts*/,
                     std::uint32_t seed) { return pagmo::algorithm(PythonSearch(name, seed)); }};
}

/// A genotype from what Python says of it.
Genotype read_genotype(const nlohmann::json& json, const SearchSpace& space) {
  if (!json.is_object()) {
    throw InputError("genotype " + json.dump() + ": must be a map from genes to values");
  }
  std::vector<std::pair<std::string, GeneValue>> values;
  std::vector<std::string> names;
  for (const auto& gene : space.genes()) {
    names.push_back(gene.name);
    const auto given = json.find(gene.name);
    if (given == json.end() && !gene.varies()) {
      values.emplace_back(
          gene.name, gene.categorical() ? GeneValue(gene.options.front()) : GeneValue(gene.min));
    } else if (given == json.end()) {
      throw InputError("genotype " + json.dump() + ": the gene " + gene.name + " is missing");
    } else if (gene.categorical() ? !given->is_string() : !given->is_number()) {
      throw InputError("genotype: " + gene.name + " = " + given->dump() + ", must be " +
                       (gene.categorical() ? "one of " + join(gene.options) : "a number"));
    } else if (gene.categorical()) {
      values.emplace_back(gene.name, given->get<std::string>());
    } else {
      values.emplace_back(gene.name, given->get<double>());
    }
  }
  for (const auto& item : json.items()) {
    if (std::find(names.begin(), names.end(), item.key()) == names.end()) {
      throw InputError("genotype: unknown gene '" + item.key() + "', known: " + join(names));
    }
  }
  return Genotype(std::move(values));
}

/// Takes over the version of a function.
/// @param recorded  the part of the resolved configuration that names it.
void stamp(const std::string& path, const std::string& version, Parameters& settings,
           nlohmann::json& recorded) {
  const auto given = settings.get<std::string>("version");
  if (!given.empty() && given != version) {
    throw InputError(path + ".version = " + given + ", must be " + version +
                     ", that of the function which is registered");
  }
  settings.set("version", version);
  recorded["version"] = version;
}

/// @param kind  "objectives" or "algorithms".
std::string version_of(const char* kind, const std::string& name) {
  const py::gil_scoped_acquire lock;
  return functions().attr(kind)[name.c_str()].attr("version").cast<std::string>();
}

}  // namespace

void add_objective(const std::string& name, const std::string& summary) {
  if (is_recorded_name(name)) {
    throw InputError("objective '" + name +
                     "': runs record something else under this name (docs/files.md), must have "
                     "another");
  }
  add(objectives(), name, summary,
      [name](const Parameters& /*settings*/) { return make_objective(name); });
}

void add_algorithm(const std::string& name, const std::string& summary) {
  add(algorithms(), name, summary, [name] { return make_algorithm(name); });
}

Experiment with_versions(Experiment experiment) {
  const auto& own = names_of(objectives().kind());
  std::set<std::string> wanted;
  for (std::size_t i = 0; i < experiment.objectives.objectives.size(); ++i) {
    auto& objective = experiment.objectives.objectives[i];
    wanted.insert(objective.name);
    if (!own.contains(objective.key)) continue;
    stamp("objectives." + objective.key, version_of("objectives", objective.key),
          objective.settings, experiment.resolved.at("objectives").at(i));
  }
  for (const auto& constraint : experiment.objectives.constraints) {
    const auto& quantity = constraint.quantity;
    if (own.contains(quantity.key) && !wanted.contains(quantity.name)) {
      throw InputError("constraints: " + quantity.name +
                       " is a Python function, must be among the objectives, too, where its "
                       "version is recorded");
    }
  }
  if (names_of(algorithms().kind()).contains(experiment.algorithm) &&
      experiment.resolved.contains("algorithm")) {
    stamp("algorithm", version_of("algorithms", experiment.algorithm),
          experiment.algorithm_settings, experiment.resolved["algorithm"]);
  }
  return experiment;
}

SearchedSpace::SearchedSpace(const SearchSpace& space) { searched_space = &space; }
SearchedSpace::~SearchedSpace() { searched_space = nullptr; }

Asking::Asking(const SearchSpace& space, const pagmo::population& population)
    : space_(space), population_(population), asked_(population) {}

nlohmann::json Asking::genes() const {
  auto list = nlohmann::json::array();
  for (const auto& gene : space_.genes()) {
    nlohmann::json item{{"name", gene.name}};
    if (gene.categorical()) {
      item["options"] = gene.options;
    } else {
      item["min"] = gene.min;
      item["max"] = gene.max;
      item["log"] = gene.log;
    }
    list.push_back(std::move(item));
  }
  return list;
}

nlohmann::json Asking::initial() const {
  auto list = nlohmann::json::array();
  for (std::size_t i = 0; i < population_.size(); ++i) {
    const auto genotype = space_.decode(population_.get_x()[i]);
    list.push_back({genotype_json(genotype), population_.get_f()[i]});
  }
  return list;
}

nlohmann::json Asking::ask(const nlohmann::json& genotypes) {
  if (ended_by_) throw Ended();
  std::vector<std::vector<double>> points;
  for (const auto& genotype : genotypes) {
    points.push_back(space_.encode(read_genotype(genotype, space_)));
  }
  const auto before = asked_.size();
  try {
    asked_.ask(points);
  } catch (...) {
    ended_by_ = std::current_exception();
    throw Ended();
  }
  auto fitness = nlohmann::json::array();
  for (auto i = before; i < asked_.size(); ++i) fitness.push_back(asked_.fitness(i));
  return fitness;
}

}  // namespace nas::python
