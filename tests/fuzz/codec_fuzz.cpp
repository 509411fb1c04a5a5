// A search space and decision vectors: whatever an algorithm returns is decoded to a genotype of
// the space, which encodes to a vector within the bounds that decodes to it.

#include <cmath>
#include <stdexcept>

#include <fuzzer/FuzzedDataProvider.h>

#include "fuzz/fuzz.hpp"
#include "genotype/search_space.hpp"

namespace {

using nas::fuzz::require;

std::vector<nas::Gene> genes_from(FuzzedDataProvider& given) {
  std::vector<nas::Gene> genes(given.ConsumeIntegralInRange<std::size_t>(0, 12));
  for (auto& gene : genes) {
    gene.name = given.ConsumeRandomLengthString(3);
    const auto options = given.ConsumeIntegralInRange(0, 9);
    for (int i = 0; i < options; ++i) gene.options.push_back(given.ConsumeRandomLengthString(2));
    if (gene.categorical()) continue;
    gene.min = given.ConsumeFloatingPoint<double>();
    gene.max = given.ConsumeFloatingPoint<double>();
    gene.decimals = given.ConsumeIntegralInRange(-1, 12);
    if (gene.decimals < 0) continue;
    // Bounds with more decimals are values that no other vector is decoded to.
    const double scale = std::pow(10.0, gene.decimals);
    for (auto* bound : {&gene.min, &gene.max}) {
      if (std::abs(*bound * scale) < 0x1p53) *bound = std::round(*bound * scale) / scale;
    }
  }
  return genes;
}

void go_round(const nas::SearchSpace& space, nas::Encoding encoding, FuzzedDataProvider& given) {
  const auto [lower, upper] = space.bounds(encoding);
  std::vector<double> vector(lower.size());
  for (auto& x : vector) x = given.ConsumeFloatingPoint<double>();
  nas::Genotype genotype;
  try {
    genotype = space.decode(vector, encoding);
  } catch (const std::invalid_argument&) {
    for (const auto x : vector) {
      if (std::isnan(x)) return;
    }
    throw;
  }
  const auto encoded = space.encode(genotype, encoding);
  require(encoded.size() == lower.size(), "a genotype has a vector of the space's length");
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    require(lower[i] <= encoded[i] && encoded[i] <= upper[i], "which is within the bounds");
  }
  require(space.decode(encoded, encoding) == genotype, "and decodes to it");
  nas::RandomEngine random(1);
  require(space.decode(space.encode(genotype, encoding, &random), encoding) == genotype,
          "as every other one that is drawn");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider given(data, size);
  auto genes = genes_from(given);
  nas::fuzz::taken([&] {
    const nas::SearchSpace space(std::move(genes));
    for (const auto encoding :
         {nas::Encoding::integers, nas::Encoding::relaxed, nas::Encoding::scores}) {
      go_round(space, encoding, given);
    }
  });
  return 0;
}
