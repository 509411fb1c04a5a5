#pragma once

#include <memory>
#include <string>

#include <pagmo/algorithm.hpp>

#include "data/corpus.hpp"
#include "search/algorithm.hpp"
#include "search/problem.hpp"

namespace nas {

/// Registers plug-ins that compute nothing: a corpus and an algorithm with settings of every kind,
/// and the default problem, which links Torch and is not there without it.
inline bool register_stand_in_plugins() {
  corpora().add(
      {.key = "stand_in_corpus",
       .summary = "a corpus that needs a path",
       .settings =
           {{.name = "path",
             .default_value = std::string(),
             .help = "folder of the text",
             .required = true,
             .names_file = true},
            {.name = "lines", .default_value = std::int64_t{100}, .help = "lines", .min = 1}},
       .file = __FILE__},
      [](const Parameters&, std::int64_t, const DataLocation&) { return Corpus{}; });
  algorithms().add({.key = "stand_in_search",
                    .summary = "an algorithm with a rate",
                    .settings = {{.name = "rate",
                                  .default_value = 0.25,
                                  .help = "of change",
                                  .min = 0,
                                  .max = 1,
                                  .max_exclusive = true},
                                 {.name = "schedule",
                                  .default_value = std::string("constant"),
                                  .help = "of the rate",
                                  .choices = {"constant", "falling"}}},
                    .file = __FILE__},
                   [] {
                     return Algorithm{.objectives = Algorithm::Objectives::any,
                                      .make = [](const Parameters&, const SearchFacts&,
                                                 std::uint32_t) { return pagmo::algorithm(); }};
                   });
  if (!problems().contains("attention_search")) {
    problems().add({.key = "attention_search", .summary = "train and score", .file = __FILE__}, [] {
      return ProblemKind{
          .sections = {"semantics", "space", "baseline", "model", "data", "training"},
          .make = [](const ProblemInputs&) { return std::shared_ptr<Problem>(); }};
    });
  }
  return true;
}

/// Registered before main, as plug-ins are.
[[maybe_unused]] inline const bool stand_in_plugins_registered = register_stand_in_plugins();

}  // namespace nas
