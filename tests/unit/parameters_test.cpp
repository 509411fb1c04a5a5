#include "core/parameters.hpp"

#include <nlohmann/json.hpp>

#include "prelude.hpp"

namespace nas {
namespace {

using Integers = std::vector<std::int64_t>;

Setting number(double min, double max) {
  return {.name = "x", .default_value = 0.5, .help = "a number", .min = min, .max = max};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Setting, ClosedRangeIncludesItsEnds) {
  const auto setting = number(0.0, 1.0);
  EXPECT_EQ(setting.allowed(), "in [0, 1]");
  EXPECT_EQ(setting.violation(0.0), "");
  EXPECT_EQ(setting.violation(1.0), "");
  EXPECT_EQ(setting.violation(-0.1), "must be in [0, 1]");
  EXPECT_EQ(setting.violation(1.1), "must be in [0, 1]");
}

TEST(Setting, OpenRangeExcludesItsEnds) {
  auto setting = number(0.0, 1.0);
  setting.max_exclusive = true;
  EXPECT_EQ(setting.allowed(), "in [0, 1)");
  EXPECT_EQ(setting.violation(0.0), "");
  EXPECT_EQ(setting.violation(1.0), "must be in [0, 1)");
  setting.min_exclusive = true;
  EXPECT_EQ(setting.allowed(), "in (0, 1)");
  EXPECT_EQ(setting.violation(0.0), "must be in (0, 1)");
  EXPECT_EQ(setting.violation(0.5), "");
}

TEST(Setting, OneSidedRanges) {
  auto least = number(2.0, kInfinity);
  EXPECT_EQ(least.violation(1.0), "must be >= 2");
  EXPECT_EQ(least.violation(1e300), "");
  least.min_exclusive = true;
  EXPECT_EQ(least.violation(2.0), "must be > 2");
  auto most = number(-kInfinity, 2.0);
  EXPECT_EQ(most.violation(3.0), "must be <= 2");
  most.max_exclusive = true;
  EXPECT_EQ(most.violation(2.0), "must be < 2");
}

TEST(Setting, RefusesNan) {
  EXPECT_EQ(number(0.0, 1.0).violation(std::numeric_limits<double>::quiet_NaN()),
            "must be in [0, 1]");
}

TEST(Setting, ChoicesNameTheNearest) {
  const Setting setting{.name = "schedule",
                        .default_value = std::string("constant"),
                        .help = "schedule",
                        .choices = {"constant", "cosine"}};
  EXPECT_EQ(setting.allowed(), "one of constant, cosine");
  EXPECT_EQ(setting.violation(std::string("cosine")), "");
  EXPECT_EQ(setting.violation(std::string("cosin")),
            "must be one of constant, cosine; did you mean cosine?");
  EXPECT_EQ(setting.violation(std::string("exponential")), "must be one of constant, cosine");
}

TEST(Setting, ListsAreCheckedItemByItem) {
  const Setting integers{
      .name = "checkpoints", .default_value = Integers{}, .help = "steps", .min = 1};
  EXPECT_EQ(integers.violation(Integers{}), "");
  EXPECT_EQ(integers.violation(Integers{1, 2}), "");
  EXPECT_EQ(integers.violation(Integers{1, 0}), "every item must be >= 1");
  const Setting texts{.name = "objectives",
                      .default_value = Texts{},
                      .help = "objectives",
                      .choices = {"flops", "perplexity"}};
  EXPECT_EQ(texts.violation(Texts{"flops", "perplexity"}), "");
  EXPECT_EQ(texts.violation(Texts{"flops", "perplexit"}),
            "every item must be one of flops, perplexity; did you mean perplexity?");
}

TEST(Setting, NamesItsType) {
  const auto type = [](Value value) {
    return Setting{.name = "x", .default_value = std::move(value), .help = "x"}.type_name();
  };
  EXPECT_EQ(type(true), "true or false");
  EXPECT_EQ(type(Integer{1}), "integer");
  EXPECT_EQ(type(1.0), "number");
  EXPECT_EQ(type(std::string("a")), "text");
  EXPECT_EQ(type(Integers{}), "list of integers");
  EXPECT_EQ(type(Texts{}), "list of texts");
  const Setting any{.name = "x", .default_value = std::string(), .help = "x"};
  EXPECT_EQ(any.allowed(), "any text");
}

TEST(Parameters, BecomeJsonWithTheirTypes) {
  Parameters parameters;
  parameters.set("flag", true);
  parameters.set("count", Integer{3});
  parameters.set("rate", 3e-4);
  parameters.set("whole", 1.0);
  parameters.set("list", Integers{1, 2});
  parameters.set("names", Texts{"a"});
  parameters.set("word", std::string("w"));
  const nlohmann::json json = parameters;
  EXPECT_EQ(json.dump(),
            R"({"count":3,"flag":true,"list":[1,2],"names":["a"],"rate":0.0003,"whole":1.0,)"
            R"("word":"w"})");
  EXPECT_EQ(nlohmann::json(Parameters()).dump(), "{}");
}

TEST(Parameters, TakeValuesOverFromTheirJson) {
  Parameters parameters;
  parameters.set("kept", true);
  parameters.set("rate", 0.5);
  parameters.set("list", Integers{1, 2});
  nlohmann::json({{"rate", 1}, {"list", Integers{}}}).get_to(parameters);
  EXPECT_TRUE(parameters.get<bool>("kept"));
  EXPECT_EQ(parameters.get<double>("rate"), 1.0);
  EXPECT_EQ(parameters.get<Integers>("list"), Integers{});
  EXPECT_THROW(nlohmann::json({{"rat", 1}}).get_to(parameters), std::logic_error);
}

}  // namespace
}  // namespace nas
