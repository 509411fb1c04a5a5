#include "algorithms/regularized_evolution.hpp"

#include <numeric>
#include <stdexcept>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>

#include "prelude.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// Six variables of nine values; keeps what it is asked for.
struct Sum {
  [[nodiscard]] Vector fitness(const Vector& x) const {
    asked->push_back(x);
    double sum = 0.0;
    for (const double value : x) sum += value;
    return {sum};
  }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const {
    return {Vector(6, 0), Vector(6, 8)};
  }
  [[nodiscard]] std::size_t get_nix() const { return 6; }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}

  std::shared_ptr<std::vector<Vector>> asked = std::make_shared<std::vector<Vector>>();
};

constexpr std::size_t kPopulation = 5;

std::vector<Vector> asked(const RegularizedEvolutionOptions& options) {
  const Sum sum;
  const pagmo::population population(pagmo::problem(sum), kPopulation, 3);
  (void)pagmo::algorithm(RegularizedEvolution(options, 7)).evolve(population);
  return *sum.asked;
}

std::ptrdiff_t num_different(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), std::ptrdiff_t{0}, std::plus<>(),
                            [](double x, double y) { return x == y ? 0 : 1; });
}

/// Whether a point could be the child of one of those in [first, last).
bool is_child(const std::vector<Vector>& points, std::size_t child, std::size_t first,
              std::size_t last) {
  return std::any_of(points.begin() + static_cast<std::ptrdiff_t>(first),
                     points.begin() + static_cast<std::ptrdiff_t>(last),
                     [&](const Vector& point) { return num_different(points[child], point) == 1; });
}

TEST(RegularizedEvolution, ParentsAreAmongTheLastThatWereTold) {
  for (const unsigned in_flight : {1U, 2U, 7U}) {
    const auto points = asked({.evaluations = 80, .sample = 2, .in_flight = in_flight});
    ASSERT_EQ(points.size(), 80U);
    for (std::size_t i = kPopulation; i < points.size(); ++i) {
      // This problem answers in the order of asking: when a child is asked for, in_flight - 1 are
      // out, and before that as many as were asked.
      const auto told = std::max(kPopulation, i - std::min<std::size_t>(i, in_flight - 1));
      EXPECT_TRUE(is_child(points, i, told - kPopulation, told)) << i << " of " << in_flight;
    }
  }
}

TEST(RegularizedEvolution, OneOutIsOneAfterTheOther) {
  EXPECT_EQ(asked({.evaluations = 60, .in_flight = 1}), asked({.evaluations = 60, .batch = 1}));
  EXPECT_NE(asked({.evaluations = 60, .in_flight = 4}), asked({.evaluations = 60}));
}

TEST(RegularizedEvolution, NothingWaitsForABatchWhereSeveralAreOut) {
  EXPECT_THROW(RegularizedEvolution({.batch = 2, .in_flight = 2}), std::invalid_argument);
  EXPECT_THROW(RegularizedEvolution({.in_flight = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace nas
