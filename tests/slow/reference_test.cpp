// Published results of search algorithms, reproduced through configurations as a user would run
// them: medians over 31 seeds within the published spread.

#include <algorithm>
#include <cmath>
#include <iostream>

#include <gtest/gtest.h>

#include "indicators/indicators.hpp"
#include "places.hpp"
#include "store/store.hpp"
#include "study/study.hpp"
#include "unit/data_fixture.hpp"

namespace nas::testing {
namespace {

constexpr int kSeeds = 31;

struct Quartiles {
  double first, median, third;
};

Quartiles quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&values](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
  };
  return {at(0.25), at(0.5), at(0.75)};
}

/// Runs a configuration of the project once for each seed. @return what `measure` finds in the
/// stores.
template <class Measure>
std::vector<double> over_seeds(const std::string& name, std::vector<std::string> overrides,
                               Measure measure) {
  std::vector<double> values;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const TemporaryFolder folder;
    auto given = overrides;
    given.push_back("seed=" + std::to_string(seed));
    const Study study(source_folder() + "/configs/" + name + ".yaml", given, folder.path());
    (void)study.run();
    values.push_back(measure(Store(folder.path() / "store.sqlite", Store::Mode::read_only)));
  }
  return values;
}

struct Case {
  const char* name;
  const char* configuration;
  std::vector<std::string> overrides;
  double reference_point;  ///< of the hypervolume, in every objective
  double median;           ///< published, 31 seeds
  double interquartile;
  int reached = kSeeds;  ///< published: how many of the seeds got to the target at all
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class Nsga2Reference : public ::testing::TestWithParam<Case> {};

TEST_P(Nsga2Reference, HypervolumeOfTheLastPopulation) {
  const auto& expected = GetParam();
  const auto values =
      over_seeds(expected.configuration, expected.overrides, [&](const Store& store) {
        const auto points = store.meta("last_population")->get<Points>();
        return hypervolume(points, Point(points.front().size(), expected.reference_point));
      });
  const auto [first, median, third] = quartiles(values);
  std::cout << expected.name << ": median " << median << ", quartiles " << first << " " << third
            << "; published " << expected.median << ", IQR " << expected.interquartile << '\n';
  EXPECT_NEAR(median, expected.median, expected.interquartile);
}

const char* const kZdt = "nsga2_zdt";

INSTANTIATE_TEST_SUITE_P(
    , Nsga2Reference,
    ::testing::Values(Case{"ZDT1", kZdt, {"problem.function=1"}, 1.0, 0.65963, 0.00030},
                      Case{"ZDT2", kZdt, {"problem.function=2"}, 1.0, 0.32647, 0.00047},
                      Case{"ZDT3", kZdt, {"problem.function=3"}, 1.0, 1.04029, 0.00031},
                      Case{"ZDT4", kZdt, {"problem.function=4"}, 1.0, 0.65732, 0.0038},
                      Case{"ZDT6", kZdt, {"problem.function=6"}, 1.0, 0.31524, 0.00075}),
    [](const auto& test) { return test.param.name; });

class CmaesReference : public ::testing::TestWithParam<Case> {};

TEST_P(CmaesReference, CandidatesToTheTarget) {
  const auto& expected = GetParam();
  int reached = 0;
  std::vector<double> counts;
  over_seeds(expected.configuration, expected.overrides, [&](const Store& store) {
    if (store.meta("ended_by")->get<std::string>().rfind("target", 0) == 0) {
      ++reached;
      counts.push_back(static_cast<double>(store.asks().size()));
    }
    return 0.0;
  });
  // The others end in a local minimum, and have no count.
  ASSERT_GE(reached, expected.reached) << expected.name;
  const auto [first, median, third] = quartiles(counts);
  std::cout << expected.name << ": " << reached << "/" << kSeeds << " reached, median " << median
            << ", quartiles " << first << " " << third << "; published " << expected.median
            << ", IQR " << expected.interquartile << '\n';
  EXPECT_NEAR(median, expected.median, expected.interquartile);
}

const char* const kSphere = "cmaes_sphere";

INSTANTIATE_TEST_SUITE_P(
    , CmaesReference,
    ::testing::Values(Case{"Sphere10", kSphere, {}, 0, 1610, 85},
                      Case{"Sphere20", kSphere, {"problem.dimension=20"}, 0, 3048, 132}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace nas::testing
