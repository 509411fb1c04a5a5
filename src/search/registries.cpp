#include <algorithm>

#include "core/define_registry.hpp"
#include "core/setting_forms.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

NAS_DEFINE_REGISTRY(AlgorithmRegistry, algorithms, "algorithm")
NAS_DEFINE_REGISTRY(ObjectiveRegistry, objectives, "objective")
NAS_DEFINE_REGISTRY(ProblemRegistry, problems, "problem")

Setting integer_setting(std::string name, std::int64_t value, double min, double max,
                        std::string help) {
  return setting::integer(std::move(name), value, min, max, std::move(help));
}

Setting number_setting(std::string name, double value, double min, double max, std::string help) {
  return setting::number(std::move(name), value, min, max, std::move(help));
}

Setting choice_setting(std::string name, std::vector<std::string> choices, std::string help) {
  auto first = choices.front();
  return setting::choice(std::move(name), std::move(first), std::move(choices), std::move(help));
}

Setting generations_setting(std::int64_t default_value, double min) {
  return integer_setting("generations", default_value, min, 1e9,
                         "generations, the initial population included");
}

Setting evaluations_setting() {
  return integer_setting("evaluations", 100, 1, 1e9,
                         "candidates asked for, the initial population included");
}

unsigned further_generations(const Parameters& settings) {
  return static_cast<unsigned>(settings.get<std::int64_t>("generations") - 1);
}

void fit_mutation(Parameters& settings, const SearchFacts& facts) {
  if (settings.get<double>("mutation") > 0.0) return;
  settings.set("mutation", 1.0 / static_cast<double>(std::max<std::size_t>(facts.num_genes, 1)));
}

Setting context_setting() {
  return {.name = "context",
          .default_value = std::int64_t{0},
          .help = "length of the sequences, tokens; 0 = the model's",
          .min = 0,
          .max = 1e6};
}

Objective at_context(const Parameters& settings, std::string unit,
                     std::function<double(const Architecture&)> cost) {
  const auto context = settings.get<std::int64_t>("context");
  return {.unit = std::move(unit),
          .analytic = [context, cost = std::move(cost)](const Subject& subject) {
            auto architecture = subject.architecture;
            if (context > 0) architecture.context = context;
            return cost(architecture);
          }};
}

std::optional<Range> expected_perplexity(const nlohmann::json& facts) {
  double worst = facts.value("unigram_perplexity", 0.0);
  if (worst <= 1.0) worst = facts.value("vocabulary", 0.0);
  if (worst <= 1.0) return std::nullopt;
  return Range{.best = 1.0, .worst = worst};
}

}  // namespace nas
