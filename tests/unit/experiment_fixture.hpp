#pragma once

#include "config_fixture.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"
#include "stand_in_plugins.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// Reads configurations from files a.yaml.
class ExperimentTest : public ConfigTest {
 protected:
  using Integer = std::int64_t;

  [[nodiscard]] Experiment load(const std::string& text, const Texts& overrides = {}) const {
    return load_experiment(write("a.yaml", text), overrides);
  }
  [[nodiscard]] std::string mistakes(const std::string& text, const Texts& overrides = {}) const {
    return error_of([&] { (void)load(text, overrides); });
  }
  static Texts objective_names(const Experiment& experiment) {
    Texts names;
    for (const auto& objective : experiment.objectives.objectives) names.push_back(objective.name);
    return names;
  }
};

/// An algorithm that takes any number of objectives.
inline const std::string kAny = "algorithm: stand_in_search\n";

}  // namespace nas
