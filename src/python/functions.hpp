#pragma once

#include <exception>
#include <string>

#include <nlohmann/json.hpp>

#include "genotype/search_space.hpp"
#include "search/variation.hpp"
#include "study/reader/experiment.hpp"

// Functions of Python as objectives and algorithms. The registries hold their names; what such a
// function is and says is asked of attnas.functions each time, so that it can be defined anew.

namespace nas::python {

/// Registers names, each once in a process.
/// @throws InputError if a plug-in of the library has the name.
void add_objective(const std::string& name, const std::string& summary);
void add_algorithm(const std::string& name, const std::string& summary);

/// The experiment with the versions of the functions that it names, as settings of theirs: they are
/// recorded with the configuration, and a run continues with the same ones only.
/// @throws InputError where the configuration gives another version, or a constraint is on a
/// function that is no objective, whose version would not be recorded.
Experiment with_versions(Experiment experiment);

/// The space that the search on this thread is in, as long as it lives; algorithms of Python are
/// called within it alone, never for a rehearsal, whose values are made up.
class SearchedSpace {
 public:
  explicit SearchedSpace(const SearchSpace& space);
  ~SearchedSpace();
  SearchedSpace(const SearchedSpace&) = delete;
  SearchedSpace& operator=(const SearchedSpace&) = delete;
};

/// What an algorithm of Python asks of its search.
class Asking {
 public:
  Asking(const SearchSpace& space, const pagmo::population& population);

  /// A list of genes: "name", and "options" or "min" and "max".
  [[nodiscard]] nlohmann::json genes() const;
  /// The initial population: a list of pairs of a genotype (an object) and its fitness (a list).
  [[nodiscard]] nlohmann::json initial() const;
  /// @param genotypes  a list of objects; genes that do not vary may be left out.
  /// @return a list of fitness, each a list, minimised.
  /// @throws InputError where one is not in the space; Ended.
  nlohmann::json ask(const nlohmann::json& genotypes);

  /// The search has ended, or cannot go on.
  struct Ended {};
  /// What ended it; empty as long as it goes on.
  [[nodiscard]] const std::exception_ptr& ended_by() const { return ended_by_; }
  [[nodiscard]] pagmo::population best() const { return asked_.best(); }

 private:
  const SearchSpace& space_;
  const pagmo::population& population_;
  AskedPoints asked_;
  std::exception_ptr ended_by_{};
};

}  // namespace nas::python
