#pragma once

#include <optional>
#include <string>

#include "search/problem.hpp"

namespace nas::testing {

/// A problem of two genes whose subjects differ in width.
class Widths : public Problem {
 public:
  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return {.name = genotype.option("width"), .genotype = genotype};
  }
  [[nodiscard]] nlohmann::json identity() const override { return {}; }
  void measure(const Task&, Evaluation&) override {}
  [[nodiscard]] std::string label(const std::string& candidate) const override { return candidate; }
  [[nodiscard]] nlohmann::json facts() const override { return {}; }
  [[nodiscard]] int num_workers() const override { return 1; }
  double calibrate_seconds(const Candidate&) override { return 0; }
  [[nodiscard]] std::optional<Subject> subject(const Candidate& candidate) const override {
    Subject subject;
    subject.architecture.width = std::stoll(candidate.name);
    return subject;
  }
};

}  // namespace nas::testing
