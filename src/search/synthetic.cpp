#include "search/synthetic.hpp"

#include <charconv>
#include <utility>

#include "core/format.hpp"

namespace nas {

namespace {

std::string numbered(const char* letter, std::size_t i) { return letter + std::to_string(i + 1); }

/// Candidates are named by their numbers, "0.25|0.5", which read back exactly.
class Synthetic final : public Problem {
 public:
  explicit Synthetic(pagmo::problem problem) : problem_(std::move(problem)) {}

  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    std::string name;
    for (const auto& [gene, value] : genotype.values()) {
      if (!name.empty()) name += '|';
      name += shortest(std::get<double>(value));
    }
    return {.name = name, .genotype = genotype};
  }
  [[nodiscard]] Candidate parse(const std::string& name) const override {
    std::vector<std::pair<std::string, GeneValue>> values;
    const char* begin = name.data();
    const char* const end = begin + name.size();
    while (begin < end) {
      double value = 0.0;
      begin = std::from_chars(begin, end, value).ptr + 1;  // and the bar after it
      values.emplace_back(numbered("x", values.size()), value);
    }
    return canonical(Genotype(std::move(values)));
  }
  [[nodiscard]] nlohmann::json identity() const override {
    return {{"problem", problem_.get_name()}};
  }
  [[nodiscard]] bool expensive() const override { return false; }
  void measure(const Task& task, Evaluation& evaluation) override {
    const auto fitness = problem_.fitness(numbers(task.candidate.genotype));
    for (std::size_t i = 0; i < fitness.size(); ++i) {
      evaluation.values[numbered("f", i)] = fitness[i];
    }
    evaluation.status = Status::ok;
  }
  [[nodiscard]] std::string label(const std::string& candidate) const override { return candidate; }
  [[nodiscard]] nlohmann::json facts() const override {
    return {{"function", problem_.get_name()}};
  }
  [[nodiscard]] int num_workers() const override { return 1; }
  double calibrate_seconds(const Candidate& /*candidate*/) override { return 0.0; }

 private:
  static std::vector<double> numbers(const Genotype& genotype) {
    std::vector<double> values;
    for (const auto& [gene, value] : genotype.values()) values.push_back(std::get<double>(value));
    return values;
  }

  pagmo::problem problem_;
};

}  // namespace

ProblemKind synthetic(std::function<pagmo::problem(const Parameters& settings)> build) {
  return {.sections = {},
          .space =
              [build](const Parameters& settings) {
                const auto [lower, upper] = build(settings).get_bounds();
                std::vector<Gene> genes;
                for (std::size_t i = 0; i < lower.size(); ++i) {
                  genes.push_back({.name = numbered("x", i), .min = lower[i], .max = upper[i]});
                }
                return SearchSpace(std::move(genes));
              },
          .objectives =
              [build](const Parameters& settings) {
                std::vector<ChosenObjective> chosen;
                for (std::size_t i = 0; i < build(settings).get_nobj(); ++i) {
                  const auto name = numbered("f", i);
                  chosen.push_back({.name = name,
                                    .key = name,
                                    .settings = {},
                                    .objective = {.unit = "1",
                                                  .trained =
                                                      [name](const Evaluation& evaluation) {
                                                        return evaluation.values.at(name);
                                                      }},
                                    .range = Range{}});
                }
                return chosen;
              },
          .make = [build](const ProblemInputs& inputs) -> std::shared_ptr<Problem> {
            return std::make_shared<Synthetic>(build(inputs.settings));
          }};
}

}  // namespace nas
