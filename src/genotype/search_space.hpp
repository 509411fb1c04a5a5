#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/seed.hpp"
#include "core/visibility.hpp"
#include "genotype/encoding.hpp"

namespace NAS_PUBLIC nas {

/// One named search-space variable: a choice among options, or a real within bounds.
struct Gene {
  std::string name;
  std::vector<std::string>
      options{};      ///< at least one for a categorical gene; empty for a real one
  double min = 0.0;   ///< real gene only
  double max = 0.0;   ///< real gene only, >= min
  int decimals = -1;  ///< real gene only: values are rounded to so many; -1 = not at all
  bool log = false;   ///< real gene only, min > 0: algorithms see logarithms of its values
  int digits = 12;    ///< with log: significant digits of values that are not given, in [1, 12]

  [[nodiscard]] bool categorical() const { return !options.empty(); }
  /// Whether there is anything to choose.
  [[nodiscard]] bool varies() const { return categorical() ? options.size() > 1 : min < max; }
};

using GeneValue = std::variant<std::string, double>;

/// Gene values by name, in the order of the search space. What an algorithm proposes, before canonicalisation.
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
/// Decision vector: first the real genes, then the categorical ones, each group in the order of the genes; genes that
/// do not vary are left out (pagmo's algorithms refuse equal bounds). Of a gene with Gene::log the entry is the natural
/// logarithm. An entry that is the logarithm of a number of 12 significant digits stands for that, as encode() gives it; any other
/// (of random ones all but one in thousands) for the nearest number of Gene::digits.
class SearchSpace {
 public:
  SearchSpace() = default;
  /// @throws InputError if a name repeats, an option repeats within a gene, or min > max.
  explicit SearchSpace(std::vector<Gene> genes);

  [[nodiscard]] const std::vector<Gene>& genes() const { return genes_; }
  /// @throws std::logic_error if there is no such gene.
  [[nodiscard]] const Gene& gene(std::string_view name) const;
  /// Number of combinations of the categorical genes; exact up to 2^53.
  [[nodiscard]] double num_combinations() const;
  /// Number of genes that vary.
  [[nodiscard]] std::size_t num_varying() const;
  /// Length of the integer part of a decision vector.
  [[nodiscard]] std::size_t num_integers(Encoding encoding = Encoding::integers) const;
  /// Lower and upper bounds of the decision vector.
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> bounds(
      Encoding encoding = Encoding::integers) const;

  /// Decodes defensively, since pagmo checks lengths only: values are clamped to the bounds,
  /// integers rounded to the nearest. @throws std::invalid_argument on a wrong length or NaN.
  [[nodiscard]] Genotype decode(const std::vector<double>& decision_vector,
                                Encoding encoding = Encoding::integers) const;
  /// Inverse of decode on valid genotypes.
  /// @param random  where several vectors decode to the genotype, one of them is drawn; without it they are the middle ones.
  /// @throws InputError if a value is not in the space, naming the gene, the value and what is allowed; std::logic_error if a
  /// gene is missing.
  [[nodiscard]] std::vector<double> encode(const Genotype& genotype,
                                           Encoding encoding = Encoding::integers,
                                           RandomEngine* random = nullptr) const;
  /// A genotype drawn uniformly, gene by gene.
  [[nodiscard]] Genotype draw(RandomEngine& random) const;

 private:
  std::vector<Gene> genes_;
};

}  // namespace nas
