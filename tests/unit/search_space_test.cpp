#include "genotype/search_space.hpp"

#include "core/error.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// The paper's space, its dropout not rounded.
SearchSpace exact_space() {
  auto genes = paper_space().genes();
  genes.back().decimals = -1;
  return SearchSpace(std::move(genes));
}

/// A real gene between categorical ones: the decision vector has another order than the genes.
SearchSpace mixed_space() {
  return SearchSpace({{.name = "a", .options = {"a0", "a1", "a2"}},
                      {.name = "x", .min = -1.0, .max = 1.0},
                      {.name = "b", .options = {"b0", "b1"}},
                      {.name = "y", .min = 5.0, .max = 5.0},
                      {.name = "c", .options = {"c0"}}});
}

TEST(SearchSpace, LargeValuesAreNotRoundedAway) {
  const SearchSpace space({{.name = "x", .min = 0.0, .max = 1e305, .decimals = 12}});
  for (const double x : {7e300, 12345678.125, 1e15 / 3.0}) {
    const auto genotype = space.decode({x});
    EXPECT_NEAR(genotype.real("x") / x, 1.0, 1e-12);
    EXPECT_EQ(space.decode(space.encode(genotype)), genotype);
  }
}

TEST(SearchSpace, OrdersOfMagnitudeAreDrawnAlikeWhereLogIsTrue) {
  const SearchSpace space({{.name = "x", .min = 1e-3, .max = 1e5, .log = true, .digits = 3}});
  const auto [lower, upper] = space.bounds();
  EXPECT_NEAR(lower.front(), std::log(1e-3), 1e-12);
  EXPECT_NEAR(upper.front(), std::log(1e5), 1e-12);
  RandomEngine random(3);
  int below_10 = 0, long_values = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const auto genotype = space.draw(random);
    EXPECT_GE(genotype.real("x"), 1e-3);
    EXPECT_LE(genotype.real("x"), 1e5);
    EXPECT_EQ(space.decode(space.encode(genotype)), genotype) << genotype.real("x");
    // A point beside it is one of no given value, but for one in thousands.
    const auto mutated = space.decode({space.encode(genotype).front() + random.uniform()});
    for (const double x : {genotype.real("x"), mutated.real("x")}) {
      const auto text = (std::ostringstream() << std::setprecision(3) << x).str();
      long_values += std::stod(text) == x ? 0 : 1;
    }
    below_10 += genotype.real("x") < 10.0 ? 1 : 0;
  }
  EXPECT_NEAR(below_10, kDraws / 2, 5 * std::sqrt(kDraws) / 2) << "4 of 8 orders";
  EXPECT_LE(long_values, 10);
  for (const double given : {1e-3, 0.00282842712475, 0.123456789, 1.0, 500.0, 1e4, 1e5}) {
    EXPECT_EQ(space.decode(space.encode(Genotype({{"x", given}}))).real("x"), given);
  }
  EXPECT_NE(message_of<InputError>([&] {
              (void)SearchSpace({{.name = "x", .min = 0.0, .max = 1.0, .log = true}});
            }).find("must be > 0 where log is true"),
            std::string::npos);
}

TEST(SearchSpace, DecodeClampsAndRounds) {
  const auto space = mixed_space();
  EXPECT_EQ(space.decode({-7.0, -3.0, 0.0}), space.decode({-1.0, 0.0, 0.0}));
  EXPECT_EQ(space.decode({7.0, 9.0, 4.0}), space.decode({1.0, 2.0, 1.0}));
  EXPECT_EQ(space.decode({0.0, 1.4, 0.0}).option("a"), "a1");
  EXPECT_EQ(space.decode({0.0, 1.6, 0.0}).option("a"), "a2");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(space.decode({infinity, -infinity, 0.0}), space.decode({1.0, 0.0, 0.0}));
}

TEST(SearchSpace, DecodeRefusesNanAndWrongLengths) {
  const auto space = mixed_space();
  for (const auto& vector : {Vector{0.0, NAN, 0.0}, Vector{NAN, 0.0, 0.0}}) {
    EXPECT_EQ(message_of<std::invalid_argument>([&] { (void)space.decode(vector); }),
              "decision vector: an entry is NaN");
  }
  EXPECT_EQ(message_of<std::invalid_argument>([&] { (void)space.decode({0.0}); }),
            "decision vector has 1 entries, must have 3");
  EXPECT_EQ(message_of<std::invalid_argument>([&] { (void)space.decode({0.0}, Encoding::scores); }),
            "decision vector has 1 entries, must have 6");
}

TEST(SearchSpace, RelaxedOptionsAreEquallyWide) {
  const auto space = mixed_space();
  EXPECT_EQ(space.bounds(Encoding::relaxed).second, (Vector{1, 3, 2}));
  EXPECT_EQ(space.num_integers(Encoding::relaxed), 0U);
  const auto option = [&](double x) {
    return space.decode({0, x, 0}, Encoding::relaxed).option("a");
  };
  EXPECT_EQ(option(0.0), "a0");
  EXPECT_EQ(option(0.999), "a0");
  EXPECT_EQ(option(1.0), "a1");
  EXPECT_EQ(option(3.0), "a2");
  EXPECT_EQ(option(-1.0), "a0");
}

TEST(SearchSpace, TheLargestScoreChoosesTheFirstOfEquals) {
  const auto space = mixed_space();
  EXPECT_EQ(space.bounds(Encoding::scores).second, (Vector{1, 1, 1, 1, 1, 1}));
  const auto genotype = space.decode({0.5, 0.1, 0.7, 0.2, 0.4, 0.4}, Encoding::scores);
  EXPECT_EQ(genotype.option("a"), "a1");
  EXPECT_EQ(genotype.option("b"), "b0");
  EXPECT_EQ(genotype.real("x"), 0.5);
}

TEST(SearchSpace, EveryEncodingIsUndoneByItsDecoding) {
  RandomEngine random(5);
  for (const auto& space : {exact_space(), mixed_space()}) {
    for (const auto encoding : {Encoding::integers, Encoding::relaxed, Encoding::scores}) {
      const auto [lower, upper] = space.bounds(encoding);
      for (int i = 0; i < 200; ++i) {
        const auto genotype = space.draw(random);
        for (RandomEngine* placement : {static_cast<RandomEngine*>(nullptr), &random}) {
          const auto vector = space.encode(genotype, encoding, placement);
          ASSERT_EQ(vector.size(), lower.size());
          for (std::size_t k = 0; k < vector.size(); ++k) {
            ASSERT_GE(vector[k], lower[k]);
            ASSERT_LE(vector[k], upper[k]);
          }
          ASSERT_EQ(space.decode(vector, encoding), genotype) << to_string(encoding);
        }
      }
    }
  }
}

TEST(SearchSpace, DrawsReachEveryOption) {
  const auto space = exact_space();
  RandomEngine random(1);
  std::set<Vector> seen;
  for (int i = 0; i < 6000; ++i) {
    auto vector = space.encode(space.draw(random));
    vector.front() = 0;  // dropout
    seen.insert(vector);
  }
  EXPECT_EQ(seen.size(), 384U);
}

TEST(SearchSpace, EncodeSaysWhatIsNotInTheSpace) {
  const auto space = mixed_space();
  const Genotype option({{"a", "a9"}, {"x", 0.0}, {"b", "b0"}, {"y", 5.0}, {"c", "c0"}});
  EXPECT_EQ(message_of<InputError>([&] { (void)space.encode(option); }),
            "gene a = a9, must be one of a0, a1, a2; did you mean a0?");
  const Genotype real({{"a", "a1"}, {"x", 1.5}, {"b", "b0"}, {"y", 5.0}, {"c", "c0"}});
  EXPECT_EQ(message_of<InputError>([&] { (void)space.encode(real); }),
            "gene x = 1.5, must be in [-1, 1]");
  const Genotype fixed({{"a", "a1"}, {"x", 0.5}, {"b", "b0"}, {"y", 5.0}, {"c", "c1"}});
  EXPECT_EQ(message_of<InputError>([&] { (void)space.encode(fixed); }),
            "gene c = c1, must be one of c0; did you mean c0?");
}

TEST(SearchSpace, RefusesGenesThatContradict) {
  EXPECT_EQ(message_of<InputError>([] {
              SearchSpace({{.name = "a", .options = {"0"}}, {.name = "a", .options = {"1"}}});
            }),
            "space: gene a is given twice");
  EXPECT_EQ(message_of<InputError>([] {
              SearchSpace({{.name = "a", .options = {"0", "0"}}});
            }),
            "space.a: option 0 is given twice");
  EXPECT_EQ(message_of<InputError>([] { SearchSpace({{.name = "x", .min = 0.5, .max = 0.2}}); }),
            "space.x: min = 0.5, must be <= max = 0.2");
}

TEST(SearchSpace, RealGenesAreRoundedToTheirDecimals) {
  const SearchSpace space({{.name = "dropout", .min = 0.0, .max = 0.3, .decimals = 2}});
  EXPECT_EQ(space.decode({0.0712345}).real("dropout"), 0.07);
  EXPECT_EQ(space.decode({0.299}).real("dropout"), 0.3);
  EXPECT_EQ(space.decode({0.7}).real("dropout"), 0.3);
  const SearchSpace exact({{.name = "dropout", .min = 0.0, .max = 0.3}});
  EXPECT_EQ(exact.decode({0.0712345}).real("dropout"), 0.0712345);
}

}  // namespace
}  // namespace nas
