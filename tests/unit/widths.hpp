#pragma once

#include <optional>
#include <string>

#include "search/problem.hpp"

namespace nas::testing {

/// A problem of two genes whose subjects differ in width.
class Widths final : public Problem {
 public:
  [[nodiscard]] std::string canonical(const Genotype& genotype) const override {
    return genotype.option("width");
  }
  [[nodiscard]] nlohmann::json identity(const std::string&) const override { return {}; }
  void measure(const Task&, Evaluation&) override {}
  [[nodiscard]] std::string parse(const std::string& name) const override { return name; }
  [[nodiscard]] std::string label(const std::string& candidate) const override { return candidate; }
  [[nodiscard]] nlohmann::json facts() const override { return {}; }
  [[nodiscard]] int num_workers() const override { return 1; }
  double calibrate_seconds(const std::string&) override { return 0; }
  [[nodiscard]] std::optional<Subject> subject(const std::string& candidate) const override {
    Subject subject;
    subject.architecture.width = std::stoll(candidate);
    return subject;
  }
};

}  // namespace nas::testing
