#pragma once

#include <cstddef>
#include <sstream>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/s11n.hpp>

namespace nas {

/// Points that a problem was asked for together, a list for each batch.
using AskedBatches = std::vector<std::vector<std::vector<double>>>;

/// What batch_fitness of a problem returns, its points recorded as a batch.
/// @param joined   points of `length` numbers, one after the other.
/// @param fitness  of a point, a vector.
std::vector<double> answer(AskedBatches& batches, const std::vector<double>& joined,
                           std::size_t length, const auto& fitness) {
  std::vector<double> values;
  batches.emplace_back();
  for (std::size_t i = 0; i < joined.size(); i += length) {
    const auto begin = joined.begin() + static_cast<std::ptrdiff_t>(i);
    batches.back().emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
    const auto f = fitness(batches.back().back());
    values.insert(values.end(), f.begin(), f.end());
  }
  return values;
}

/// An algorithm that was written to an archive and read again.
inline pagmo::algorithm archived(const pagmo::algorithm& algorithm) {
  std::stringstream stream;
  {
    boost::archive::binary_oarchive archive(stream);
    archive << algorithm;
  }
  pagmo::algorithm loaded;
  boost::archive::binary_iarchive archive(stream);
  archive >> loaded;
  return loaded;
}

}  // namespace nas
