#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nas {

/// One named search-space variable: a choice among options, or a real within bounds.
struct Gene {
  std::string name;
  std::vector<std::string>
      options{};      ///< at least one for a categorical gene; empty for a real one
  double min = 0.0;   ///< real gene only
  double max = 0.0;   ///< real gene only, >= min
  int decimals = -1;  ///< real gene only: values are rounded to so many; -1 = not at all

  [[nodiscard]] bool categorical() const { return !options.empty(); }
};

using GeneValue = std::variant<std::string, double>;

/// Gene values by name, in the order of the search space. What an algorithm proposes, before
/// canonicalisation.
class Genotype {
 public:
  Genotype() = default;
  explicit Genotype(std::vector<std::pair<std::string, GeneValue>> values)
      : values_(std::move(values)) {}

  /// @throws std::logic_error if the gene is absent or of the other kind.
  [[nodiscard]] const std::string& option(std::string_view gene) const;
  [[nodiscard]] double real(std::string_view gene) const;
  [[nodiscard]] const std::vector<std::pair<std::string, GeneValue>>& values() const {
    return values_;
  }

  friend bool operator==(const Genotype&, const Genotype&) = default;

 private:
  [[nodiscard]] const GeneValue& at(std::string_view gene) const;
  std::vector<std::pair<std::string, GeneValue>> values_;
};

/// The ordered genes of one problem, and the codec between decision vectors and genotypes.
///
/// Decision vector: first the real genes, then the categorical ones as integers 0 .. options-1,
/// each group in the order of the genes (pagmo wants the integer part last).
class SearchSpace {
 public:
  SearchSpace() = default;
  /// @throws InputError if a name repeats, an option repeats within a gene, or min > max.
  explicit SearchSpace(std::vector<Gene> genes);

  [[nodiscard]] const std::vector<Gene>& genes() const { return genes_; }
  /// @throws std::logic_error if there is no such gene.
  [[nodiscard]] const Gene& gene(std::string_view name) const;
  /// Number of combinations of the categorical genes (2^63-1 if more).
  [[nodiscard]] std::int64_t num_combinations() const;
  /// Number of categorical genes: the length of the integer part.
  [[nodiscard]] std::size_t num_integers() const;
  /// Lower and upper bounds of the decision vector.
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> bounds() const;

  /// Decodes defensively, since pagmo checks lengths only: values are clamped to the bounds and
  /// integers rounded to the nearest. @throws std::invalid_argument on a wrong length or NaN.
  [[nodiscard]] Genotype decode(const std::vector<double>& decision_vector) const;
  /// Inverse of decode on valid genotypes. @throws InputError if a gene is missing or its value is
  /// not in the space, naming the gene, the value and what is allowed.
  [[nodiscard]] std::vector<double> encode(const Genotype& genotype) const;

 private:
  std::vector<Gene> genes_;
};

}  // namespace nas
