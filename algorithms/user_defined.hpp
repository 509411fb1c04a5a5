#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <utility>

#include <pagmo/algorithm.hpp>

#include "core/parameters.hpp"
#include "core/visibility.hpp"
#include "search/algorithm.hpp"

namespace NAS_PUBLIC nas {

// What pagmo asks of a user-defined algorithm beside evolve() and get_name(). One of ours derives
// from Configured or Seeded and names its parameters once, in a struct of options:
//
//   struct Options {
//     unsigned sample = 3;  ///< what it is; its range
//     static void each(auto& options, auto&& field) { field("sample", options.sample); }
//     void check() const;  // throws std::invalid_argument naming the option, its value and what is
//   };                     // allowed
//
// From each() follow archives, get_extra_info() and what a configuration sets.

/// An option as text.
template <class T>
std::string field_text(const T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return std::to_string(value);
  } else {
    return to_text(Value(value));
  }
}

/// An algorithm with options and nothing at random.
template <class O>
class Configured {
 public:
  using Options = O;

  /// @throws std::invalid_argument, see Options::check().
  explicit Configured(const Options& options = {}) : options_(options) { options_.check(); }

  [[nodiscard]] const Options& options() const { return options_; }
  /// A line "name: value" per option.
  [[nodiscard]] std::string get_extra_info() const {
    std::string lines;
    Options::each(options_, [&lines](const char* name, const auto& value) {
      lines += (lines.empty() ? "" : "\n") + std::string(name) + ": " + field_text(value);
    });
    return lines;
  }

  template <class Archive>
  void serialize(Archive& archive, unsigned /*version*/) {
    Options::each(options_, [&archive](const char* /*name*/, auto& value) { archive& value; });
  }

 protected:
  Options options_;
};

/// One whose randomness comes from a seed.
template <class O>
class Seeded : public Configured<O> {
 public:
  explicit Seeded(const O& options = {}, std::uint32_t seed = 42)
      : Configured<O>(options), seed_(seed), engine_(seed) {}

  void set_seed(unsigned seed) {
    seed_ = seed;
    engine_.seed(seed);
  }
  [[nodiscard]] std::string get_extra_info() const {
    return Configured<O>::get_extra_info() + "\nseed: " + std::to_string(seed_);
  }

  template <class Archive>
  void serialize(Archive& archive, unsigned version) {
    Configured<O>::serialize(archive, version);
    archive& seed_& engine_;
  }

 protected:
  std::uint32_t seed_;
  mutable std::mt19937 engine_;
};

/// Options from the settings of their names. A yes-or-no option keeps its default: settings have
/// words for it, as `order` for `arrival`.
template <class Options>
Options options_from(const Parameters& settings) {
  Options options;
  Options::each(options, [&settings](const char* name, auto& value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_floating_point_v<T>) {
      value = settings.get<double>(name);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = settings.get<std::string>(name);
    } else if constexpr (!std::is_same_v<T, bool>) {
      value = static_cast<T>(settings.get<std::int64_t>(name));
    }
  });
  if constexpr (requires { options.arrival; }) {
    options.arrival = settings.get<std::string>("order") == "arrival";
  }
  return options;
}

/// Makes a seeded algorithm from its settings, for Algorithm::make.
template <class Search>
pagmo::algorithm make_seeded(const Parameters& settings, const SearchFacts& /*facts*/,
                             std::uint32_t seed) {
  return pagmo::algorithm(Search(options_from<typename Search::Options>(settings), seed));
}

}  // namespace nas
