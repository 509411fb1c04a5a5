#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "search/problem.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// When a rule can be looked at.
enum class RuleStage {
  configuration,  ///< once all of a configuration is read
  algorithm,      ///< before the algorithm is fitted to the search
  comparison,     ///< of a contender
  set_up,         ///< with the problem that is made of the configuration
};

/// What rules are asked of: an experiment as far as it is read.
struct RuleFacts {
  const Experiment& experiment;
  std::vector<std::string> sections{};  ///< that the problem reads, see ProblemKind
  std::set<std::string> mistaken{};     ///< sections in which there are mistakes
  const Problem* problem = nullptr;     ///< from set_up on
  std::string device = "cpu";           ///< kind of device, from set_up on

  /// The value of a setting by its path; nullptr where there is none of it.
  [[nodiscard]] const Value* find(std::string_view path) const;
  /// The same of one that is there and of this type.
  template <class T>
  [[nodiscard]] const T& get(std::string_view path) const {
    return std::get<T>(*find(path));
  }
  [[nodiscard]] std::int64_t integer(std::string_view path) const {
    return get<std::int64_t>(path);
  }
  [[nodiscard]] const std::string& text(std::string_view path) const {
    return get<std::string>(path);
  }
  /// Whether the problem reads a section that not every problem has.
  [[nodiscard]] bool reads(const std::string& section) const;
};

/// A condition that a setting must meet, beyond its type and range.
struct Rule {
  RuleStage stage;
  std::string_view setting;   ///< its path: "evaluation.repeated"; or a section
  std::string_view sections;  ///< apart by blanks: with a mistake in one it is not looked at
  bool (*broken)(const RuleFacts&);
  /// What follows "must": `{evaluation.replicates}` stands for that setting with its value, anything
  /// else in braces for what breaks the rule.
  std::string_view must;
  /// Names or phrases of what breaks it, each of which is a breach; nullptr: of nothing in particular.
  std::vector<std::string> (*by)(const RuleFacts&) = nullptr;
};

/// A rule that is broken.
struct Breach {
  std::string setting;               ///< path
  std::optional<std::string> value;  ///< that it has; none of a section
  std::string must;                  ///< "must be reuse where ..."

  /// "evaluation.repeated = retrain, must be reuse where ..."
  [[nodiscard]] std::string text() const;
};

/// @return what an experiment breaks of the rules of a stage, in their order.
std::vector<Breach> breaches(RuleStage stage, const RuleFacts& facts);

/// @return of each setting that is not at its default and has no effect beside another, a sentence.
std::vector<std::string> without_effect(const RuleFacts& facts);

/// @return what a setting (or section) must be, one text a rule: "must be a multiple of model.heads".
std::vector<std::string> rules_of(std::string_view path);

/// The rules of single settings and small groups of them. A setting that is not there breaks none. What needs more than a row, such as models
/// of a space, is checked where it is read.
std::span<const Rule> rules();

}  // namespace nas
