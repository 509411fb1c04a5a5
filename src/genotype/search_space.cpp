#include "genotype/search_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

const GeneValue& Genotype::at(std::string_view gene) const {
  for (const auto& [name, value] : values_) {
    if (name == gene) return value;
  }
  throw std::logic_error("genotype has no gene " + std::string(gene));
}

const std::string& Genotype::option(std::string_view gene) const {
  const auto* option = std::get_if<std::string>(&at(gene));
  if (option == nullptr)
    throw std::logic_error("gene " + std::string(gene) + " is not categorical");
  return *option;
}

double Genotype::real(std::string_view gene) const {
  const auto* real = std::get_if<double>(&at(gene));
  if (real == nullptr) throw std::logic_error("gene " + std::string(gene) + " is not real");
  return *real;
}

SearchSpace::SearchSpace(std::vector<Gene> genes) : genes_(std::move(genes)) {
  std::set<std::string> names;
  for (const auto& gene : genes_) {
    if (!names.insert(gene.name).second)
      throw InputError("space: gene " + gene.name + " is given twice");
    std::set<std::string> options;
    for (const auto& option : gene.options) {
      if (!options.insert(option).second) {
        throw InputError("space." + gene.name + ": option " + option + " is given twice");
      }
    }
    if (!gene.categorical() && !(gene.min <= gene.max)) {
      throw InputError("space." + gene.name + ": min = " + shortest(gene.min) +
                       ", must be <= max = " + shortest(gene.max));
    }
  }
}

const Gene& SearchSpace::gene(std::string_view name) const {
  for (const auto& gene : genes_) {
    if (gene.name == name) return gene;
  }
  throw std::logic_error("space has no gene " + std::string(name));
}

std::int64_t SearchSpace::num_combinations() const {
  std::int64_t product = 1;
  for (const auto& gene : genes_) {
    if (!gene.categorical()) continue;
    const auto options = static_cast<std::int64_t>(gene.options.size());
    if (product > std::numeric_limits<std::int64_t>::max() / options) {
      return std::numeric_limits<std::int64_t>::max();
    }
    product *= options;
  }
  return product;
}

std::size_t SearchSpace::num_integers() const {
  return static_cast<std::size_t>(std::count_if(
      genes_.begin(), genes_.end(), [](const Gene& gene) { return gene.categorical(); }));
}

std::pair<std::vector<double>, std::vector<double>> SearchSpace::bounds() const {
  std::vector<double> lower;
  std::vector<double> upper;
  for (const bool categorical : {false, true}) {
    for (const auto& gene : genes_) {
      if (gene.categorical() != categorical) continue;
      lower.push_back(categorical ? 0.0 : gene.min);
      upper.push_back(categorical ? static_cast<double>(gene.options.size() - 1) : gene.max);
    }
  }
  return {lower, upper};
}

namespace {

/// Nearest decimal fraction, as the double that such a decimal is read as.
double rounded(double x, int decimals) {
  if (decimals < 0) return x;
  const double scale = std::pow(10.0, decimals);
  return std::round(x * scale) / scale;
}

}  // namespace

Genotype SearchSpace::decode(const std::vector<double>& decision_vector) const {
  if (decision_vector.size() != genes_.size()) {
    throw std::invalid_argument("decision vector has " + std::to_string(decision_vector.size()) +
                                " entries, must have " + std::to_string(genes_.size()));
  }
  std::size_t real = 0;
  std::size_t integer = genes_.size() - num_integers();
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& gene : genes_) {
    const double x = decision_vector[gene.categorical() ? integer++ : real++];
    if (std::isnan(x))
      throw std::invalid_argument("decision vector: gene " + gene.name + " is NaN");
    if (gene.categorical()) {
      const double last = static_cast<double>(gene.options.size() - 1);
      values.emplace_back(
          gene.name, gene.options[static_cast<std::size_t>(std::clamp(std::round(x), 0.0, last))]);
    } else {
      values.emplace_back(gene.name, std::clamp(rounded(x, gene.decimals), gene.min, gene.max));
    }
  }
  return Genotype(std::move(values));
}

std::vector<double> SearchSpace::encode(const Genotype& genotype) const {
  std::vector<double> reals;
  std::vector<double> integers;
  for (const auto& gene : genes_) {
    if (gene.categorical()) {
      const auto& option = genotype.option(gene.name);
      const auto found = std::find(gene.options.begin(), gene.options.end(), option);
      if (found == gene.options.end()) {
        const std::string guess = nearest(option, gene.options);
        throw InputError("gene " + gene.name + " = " + option + ", must be one of " +
                         join(gene.options) +
                         (guess.empty() ? "" : "; did you mean " + guess + "?"));
      }
      integers.push_back(static_cast<double>(found - gene.options.begin()));
    } else {
      const double value = genotype.real(gene.name);
      require_in_range("gene " + gene.name, value, gene.min, gene.max);
      reals.push_back(value);
    }
  }
  reals.insert(reals.end(), integers.begin(), integers.end());
  return reals;
}

}  // namespace nas
