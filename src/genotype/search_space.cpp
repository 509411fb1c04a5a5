#include "genotype/search_space.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

std::string_view to_string(Encoding encoding) {
  switch (encoding) {
    case Encoding::integers:
      return "integers";
    case Encoding::relaxed:
      return "relaxed";
    default:
      return "scores";
  }
}

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
    if (gene.log && !(gene.min > 0.0)) {
      throw InputError("space." + gene.name + ": min = " + shortest(gene.min) +
                       ", must be > 0 where log is true");
    }
  }
}

const Gene& SearchSpace::gene(std::string_view name) const {
  for (const auto& gene : genes_) {
    if (gene.name == name) return gene;
  }
  throw std::logic_error("space has no gene " + std::string(name));
}

double SearchSpace::num_combinations() const {
  double product = 1.0;
  for (const auto& gene : genes_) {
    if (gene.categorical()) product *= static_cast<double>(gene.options.size());
  }
  return product;
}

std::size_t SearchSpace::num_varying() const {
  return static_cast<std::size_t>(
      std::count_if(genes_.begin(), genes_.end(), [](const Gene& gene) { return gene.varies(); }));
}

std::size_t SearchSpace::num_integers(Encoding encoding) const {
  if (encoding != Encoding::integers) return 0;
  return static_cast<std::size_t>(std::count_if(genes_.begin(), genes_.end(), [](const Gene& gene) {
    return gene.categorical() && gene.varies();
  }));
}

namespace {

/// Entries of the decision vector that a varying gene takes.
std::size_t num_entries(const Gene& gene, Encoding encoding) {
  return gene.categorical() && encoding == Encoding::scores ? gene.options.size() : 1;
}

/// The entry that stands for a value of a real gene.
double entry_of(const Gene& gene, double value) { return gene.log ? std::log(value) : value; }

double upper_bound(const Gene& gene, Encoding encoding) {
  if (!gene.categorical()) return entry_of(gene, gene.max);
  if (encoding == Encoding::scores) return 1.0;
  const auto options = static_cast<double>(gene.options.size());
  return encoding == Encoding::relaxed ? options : options - 1.0;
}

/// Calls `visit` for the varying genes in the order of the decision vector.
template <class Visit>
void in_vector_order(const std::vector<Gene>& genes, Visit visit) {
  for (const bool categorical : {false, true}) {
    for (const auto& gene : genes) {
      if (gene.categorical() == categorical && gene.varies()) visit(gene);
    }
  }
}

}  // namespace

std::pair<std::vector<double>, std::vector<double>> SearchSpace::bounds(Encoding encoding) const {
  std::vector<double> lower;
  std::vector<double> upper;
  in_vector_order(genes_, [&](const Gene& gene) {
    const auto entries = num_entries(gene, encoding);
    lower.insert(lower.end(), entries, gene.categorical() ? 0.0 : entry_of(gene, gene.min));
    upper.insert(upper.end(), entries, upper_bound(gene, encoding));
  });
  return {lower, upper};
}

namespace {

/// The number with so many significant digits that is nearest.
double with_digits(double x, int digits) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x,
                                    std::chars_format::scientific, digits - 1);
  std::from_chars(buffer.data(), result.ptr, x);
  return x;
}

/// What an entry stands for: within the bounds, and at the nearest decimal fraction as the double that it is read as.
/// @param encoded  the entry may be encode()'s of a value that keeps all digits.
double real_value(const Gene& gene, double x, bool encoded) {
  constexpr int kDigits = 12;
  if (gene.log) {
    const double value = std::exp(x), given = with_digits(value, kDigits);
    x = encoded && std::log(given) == x ? given : with_digits(value, gene.digits);
  }
  if (gene.decimals >= 0) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it there is nothing to round
    const double scale = std::pow(10.0, gene.decimals);
    if (std::abs(x * scale) < kExact) x = std::round(x * scale) / scale;
  }
  return std::clamp(x, gene.min, gene.max);
}

/// The value of a gene that does not vary.
GeneValue only_value(const Gene& gene) {
  return gene.categorical() ? GeneValue(gene.options.front()) : GeneValue(gene.min);
}

/// The option that the entries of a categorical gene stand for.
std::size_t chosen_option(const Gene& gene, Encoding encoding, const double* entries) {
  if (encoding == Encoding::scores) {
    return static_cast<std::size_t>(std::max_element(entries, entries + gene.options.size()) -
                                    entries);
  }
  const double last = static_cast<double>(gene.options.size() - 1);
  const double place = encoding == Encoding::relaxed ? std::floor(*entries) : std::round(*entries);
  return static_cast<std::size_t>(std::clamp(place, 0.0, last));
}

/// Entries that stand for an option: drawn, or the middle ones.
std::vector<double> entries_of_option(const Gene& gene, Encoding encoding, std::size_t option,
                                      RandomEngine* random) {
  if (encoding == Encoding::integers) return {static_cast<double>(option)};
  const auto share = [random] { return random != nullptr ? random->uniform() : 0.5; };
  if (encoding == Encoding::relaxed) return {static_cast<double>(option) + share()};
  std::vector<double> scores;
  for (std::size_t i = 0; i < gene.options.size(); ++i) scores.push_back(0.5 * share());
  scores[option] = 0.5 + 0.5 * share();
  return scores;
}

}  // namespace

Genotype SearchSpace::decode(const std::vector<double>& decision_vector, Encoding encoding) const {
  std::map<const Gene*, const double*> entries;
  std::size_t length = 0;
  in_vector_order(genes_, [&](const Gene& gene) {
    entries[&gene] = decision_vector.data() + length;
    length += num_entries(gene, encoding);
  });
  if (decision_vector.size() != length) {
    throw std::invalid_argument("decision vector has " + std::to_string(decision_vector.size()) +
                                " entries, must have " + std::to_string(length));
  }
  if (std::any_of(decision_vector.begin(), decision_vector.end(),
                  [](double x) { return std::isnan(x); })) {
    throw std::invalid_argument("decision vector: an entry is NaN");
  }
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& gene : genes_) {
    if (!gene.varies()) {
      values.emplace_back(gene.name, only_value(gene));
    } else if (gene.categorical()) {
      values.emplace_back(gene.name, gene.options[chosen_option(gene, encoding, entries[&gene])]);
    } else {
      values.emplace_back(gene.name, real_value(gene, *entries[&gene], true));
    }
  }
  return Genotype(std::move(values));
}

std::vector<double> SearchSpace::encode(const Genotype& genotype, Encoding encoding,
                                        RandomEngine* random) const {
  std::vector<double> vector;
  const auto place = [&](const Gene& gene) {
    if (!gene.categorical()) {
      const double value = genotype.real(gene.name);
      require_in_range("gene " + gene.name, value, gene.min, gene.max);
      return std::vector<double>{entry_of(gene, value)};
    }
    const auto& option = genotype.option(gene.name);
    const auto found = std::find(gene.options.begin(), gene.options.end(), option);
    if (found == gene.options.end()) {
      throw InputError("gene " + gene.name + " = " + option + ", must be one of " +
                       join(gene.options) + did_you_mean(option, gene.options));
    }
    return entries_of_option(gene, encoding, static_cast<std::size_t>(found - gene.options.begin()),
                             random);
  };
  for (const auto& gene : genes_) {
    if (!gene.varies()) place(gene);  // refuses what is not in the space
  }
  in_vector_order(genes_, [&](const Gene& gene) {
    const auto entries = place(gene);
    vector.insert(vector.end(), entries.begin(), entries.end());
  });
  return vector;
}

Genotype SearchSpace::draw(RandomEngine& random) const {
  std::map<const Gene*, GeneValue> drawn;
  in_vector_order(genes_, [&](const Gene& gene) {
    if (gene.categorical()) {
      const auto options = static_cast<std::int64_t>(gene.options.size());
      drawn[&gene] = gene.options[static_cast<std::size_t>(random.below(options))];
    } else {
      const double low = entry_of(gene, gene.min);
      drawn[&gene] =
          real_value(gene, low + random.uniform() * (entry_of(gene, gene.max) - low), false);
    }
  });
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& gene : genes_) {
    values.emplace_back(gene.name, gene.varies() ? drawn[&gene] : only_value(gene));
  }
  return Genotype(std::move(values));
}

}  // namespace nas
