#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"

namespace nas {
namespace {

/// A line of the file: a genotype as somebody may write it, its canonical name and its costs, or
/// that it is refused.
struct NamedModel {
  std::string given;
  Architecture frame;
  nlohmann::json expected;
};

NamedModel named_model(const std::string& line) {
  NamedModel model;
  model.expected = nlohmann::json::parse(line);
  model.given = model.expected.at("given");
  const auto& frame = model.expected.at("frame");
  model.frame.width = frame.at("width");
  model.frame.heads = frame.at("heads");
  model.frame.layers = frame.at("layers");
  model.frame.context = frame.at("context");
  model.frame.vocabulary = frame.at("vocabulary");
  return model;
}

void expect_refused(const NamedModel& model) {
  try {
    const auto read = canonical(parse_model(model.given, model.frame));
    ADD_FAILURE() << model.given << " was read as " << to_string(read);
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()), "");
  }
}

void expect_name_and_costs(const NamedModel& model) {
  const auto architecture = canonical(parse_model(model.given, model.frame));
  const auto name = to_string(architecture);
  EXPECT_EQ(name, model.expected.at("canonical").get<std::string>());
  EXPECT_EQ(canonical(architecture), architecture);
  auto frame = model.frame;
  frame.layers = architecture.layers;  // which names of six fields leave out
  EXPECT_EQ(parse_model(name, frame), architecture);
  EXPECT_EQ(canonical(parse_model(label(architecture), frame)), architecture);

  EXPECT_EQ(num_parameters(architecture), model.expected.at("parameters").get<std::int64_t>());
  EXPECT_EQ(num_non_embedding_parameters(architecture),
            model.expected.at("non_embedding").get<std::int64_t>());
  EXPECT_EQ(forward_flops(architecture), model.expected.at("flops").get<double>());
  for (const auto& [tokens, bytes] : model.expected.at("state_bytes").items()) {
    EXPECT_EQ(state_bytes(architecture, std::stoll(tokens)), bytes.get<std::int64_t>()) << tokens;
  }
}

TEST(SpaceNames, HaveTheirCanonicalFormAndCosts) {
  const char* path = std::getenv("NAS_GOLDEN_NAMES");
  if (path == nullptr) GTEST_SKIP() << "NAS_GOLDEN_NAMES names no file of genotypes";
  std::ifstream lines(path);
  int cases = 0;
  int refused = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const auto model = named_model(line);
    SCOPED_TRACE(model.given);
    if (model.expected.contains("refused")) {
      ++refused;
      expect_refused(model);
      continue;
    }
    try {
      expect_name_and_costs(model);
    } catch (const InputError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_EQ(cases, 121) << path;
  EXPECT_GT(refused, 0);
}

TEST(SpaceNames, OfThePapersModelHaveItsCosts) {
  // D 128, H 4, N 2, L 128, V 10,000: what stored results have.
  const auto vanilla = canonical(parse_model("dot|softmax|none|fixed|bias|0.1", {}));
  EXPECT_EQ(num_parameters(vanilla), 1'693'184);
  EXPECT_EQ(forward_flops(vanilla), 445'775'872.0);
}

}  // namespace
}  // namespace nas
