// What surrounds the mixers, against the golden cases of the wide space: its parts, layers with
// their norms, and whole models.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "golden_cases.hpp"
#include "nn/attention.hpp"
#include "nn/block.hpp"
#include "nn/feed_forward.hpp"
#include "nn/norm.hpp"
#include "nn/parts/convolution.hpp"
#include "nn/position_embedding.hpp"
#include "nn/transformer.hpp"

namespace nas::nn {
namespace {

using test::expect_near;
using test::Json;
using test::tensor_of;
using test::Way;
using test::ways;

/// Of options that no module computes yet.
const std::set<std::string>& later_cases() {
  static const std::set<std::string> later{"sinusoidal_linear/2x7x8"};
  return later;
}

/// Our name of a parameter. @param part  "norm1.weight", "mixer.q_proj.weight", "ffn.up.bias", ...
/// @param mixer  "attention", or the mixer's key.
std::string name_in_block(const std::string& part, const ModelGenes& genes,
                          const std::string& mixer = "attention") {
  const std::map<std::string, std::string> sequential{{"norm1", mixer + "_norm"},
                                                      {"norm2", "feed_forward_norm"}};
  const std::map<std::string, std::string> sandwich{{"norm1", mixer + "_norm"},
                                                    {"norm2", mixer + "_norm_out"},
                                                    {"norm3", "feed_forward_norm"},
                                                    {"norm4", "feed_forward_norm_out"}};
  static const std::map<std::string, std::string> kFeedForward{
      {"gate", "gate"}, {"up", "expand"}, {"down", "contract"}};
  const auto dot = part.find('.');
  const auto head = part.substr(0, dot);
  const auto rest = part.substr(dot);
  if (head == "mixer") return mixer + rest;
  if (head == "ffn") {
    const auto second = rest.find('.', 1);
    return "feed_forward." + kFeedForward.at(rest.substr(1, second - 1)) + rest.substr(second);
  }
  if (genes.word("block") == "parallel") return "norm" + rest;
  return (genes.word("norm_place") == "sandwich" ? sandwich : sequential).at(head) + rest;
}

/// Of a whole model's parameter.
std::string name_in_model(const std::string& name, const Architecture& architecture) {
  const auto& genes = architecture.genes;
  if (name == "positions.weight") return "position.weight";
  if (!name.starts_with("layers.")) return name;
  const auto begin = name.find('.', 7) + 1;
  const auto& mixer = architecture.layer(std::stoll(name.substr(7))).word("mixer");
  return name.substr(0, begin) +
         name_in_block(name.substr(begin), genes, mixer == "attn" ? "attention" : mixer);
}

ModelGenes model_genes(const Json& given) {
  ModelGenes genes;
  for (const auto* gene : {"position_embedding", "norm", "norm_place", "block"}) {
    genes.set(gene, given.at(gene).get<std::string>());
  }
  return genes.set("tied", std::to_string(given.at("tied").get<int>())).set("bias", "none");
}

Mechanism layer_of(const Json& given) {
  auto layer = vanilla_mechanism(Semantics::corrected);
  layer.set("attention_dropout", 0.0);
  layer.set("mixer", given.at("mixer").get<std::string>());
  layer.set("ffn", given.at("ffn").get<std::string>());
  test::read_genes(given.at("genes"), layer);
  return layer;
}

Architecture architecture_of(const Json& record, const std::vector<Mechanism>& stack,
                             std::int64_t hidden) {
  const auto& shapes = record.at("shapes");
  return {.genes = model_genes(record.at("settings").at("model")),
          .stack = stack,
          .layers = static_cast<std::int64_t>(stack.size()),
          .width = shapes.at("width"),
          .heads = 2,
          .context = shapes.at("tokens"),
          .hidden = hidden,
          .dropout = 0.0};
}

/// Fills parameters from a case. @param name_of  our name of each of theirs.
template <class NameOf>
void fill(std::vector<Parameter>& parameters, const Json& record, at::ScalarType type,
          const NameOf& name_of, const std::string& what) {
  std::map<std::string, const Json*> given;
  for (const auto& [name, values] : record.at("params").items()) given[name_of(name)] = &values;
  ASSERT_EQ(parameters.size(), given.size()) << what;
  for (auto& parameter : parameters) {
    ASSERT_TRUE(given.contains(parameter.name)) << what << ": " << parameter.name;
    const auto& values = *given.at(parameter.name);
    ASSERT_EQ(values.at("shape").get<std::vector<std::int64_t>>(),
              parameter.tensor.sizes().slice(1).vec())
        << what << ": " << parameter.name;
    parameter.tensor.set_data(tensor_of(values, parameter.tensor.sizes()).to(type));
  }
}

template <class NameOf>
void expect_gradients(const std::vector<Parameter>& parameters, const Json& record, const Way& way,
                      const NameOf& name_of, const std::string& what) {
  std::map<std::string, const Json*> expected;
  for (const auto& [name, values] : record.at("param_grads").items()) {
    expected[name_of(name)] = &values;
  }
  for (const auto& parameter : parameters) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << what << ": " << parameter.name;
    expect_near(parameter.tensor.grad(),
                tensor_of(*expected.at(parameter.name), parameter.tensor.sizes()), way,
                what + ": gradient of " + parameter.name);
  }
}

/// A map of vectors: y, and the gradients of sum(y w).
///
/// @param make  make(scope) gives the map (1, B, T, D) -> (1, B, T, D) with its parameters.
template <class Make, class NameOf>
void expect_map(const Json& record, const Way& way, const Make& make, const NameOf& name_of) {
  const auto what = record.at("id").get<std::string>() + " " + way.text();
  std::vector<Parameter> parameters;
  auto map = make(ParameterScope(parameters, way.mode));
  fill(parameters, record, way.type, name_of, what);
  if (::testing::Test::HasFatalFailure()) return;
  const auto& shapes = record.at("shapes");
  const std::vector<std::int64_t> sizes{1, shapes.at("batch"), shapes.at("tokens"),
                                        shapes.at("width")};
  const auto x = tensor_of(record.at("x"), sizes).to(way.type).requires_grad_(true);
  const auto y = map(x);
  expect_near(y, tensor_of(record.at("y"), sizes), way, what + ": y");
  (y * tensor_of(record.at("w"), sizes).to(way.type)).sum().backward();
  expect_near(x.grad(), tensor_of(record.at("grad_x"), sizes), way, what + ": gradient of x");
  expect_gradients(parameters, record, way, name_of, what);
}

using SpaceFrameGolden = test::SpaceCases;

TEST_F(SpaceFrameGolden, Parts) {
  int checked = 0;
  for (const auto& record : test::space_cases("part")) {
    const auto option = record.at("option").get<std::string>();
    const auto& params = record.at("params");
    const auto width = record.at("shapes").at("width").get<std::int64_t>();
    const auto same = [](const std::string& name) { return name; };
    for (const auto& way : ways()) {
      if (option == "rms_norm") {
        expect_map(
            record, way,
            [&](const ParameterScope& scope) {
              return [norm = std::shared_ptr<Norm>(norms().at("rms").make(
                          {width}, scope.child("norm")))](const torch::Tensor& x) {
                return norm->normalised(x);
              };
            },
            same);
      } else if (option == "short_conv") {
        const auto taps = params.at("conv.weight").at("shape").at(1).get<std::int64_t>();
        expect_map(
            record, way,
            [&](const ParameterScope& scope) {
              return [conv = ShortConvolution(scope.child("conv"), width, taps)](
                         const torch::Tensor& x) { return conv(x); };
            },
            same);
      } else {
        const auto hidden = params.at("up.weight").at("shape").at(0).get<std::int64_t>();
        expect_map(
            record, way,
            [&](const ParameterScope& scope) {
              return [layer = std::shared_ptr<FeedForward>(feed_forwards().at(option).make(
                          {width, hidden}, scope.child("feed_forward")))](const torch::Tensor& x) {
                return layer->forward(x, dropout_masks(0.0, Pass{}, 0, 1));
              };
            },
            [](const std::string& name) { return name_in_block("ffn." + name, {}); });
      }
    }
    ++checked;
  }
  EXPECT_EQ(checked, 5);
}

TEST_F(SpaceFrameGolden, Blocks) {
  int checked = 0;
  for (const auto& record : test::space_cases("block")) {
    const auto& layer = record.at("settings").at("layer");
    const auto architecture = architecture_of(record, {layer_of(layer)}, layer.at("hidden"));
    for (const auto& way : ways()) {
      expect_map(
          record, way,
          [&](const ParameterScope& scope) {
            return [block = std::make_shared<Block>(std::vector{architecture}, scope, 0)](
                       const torch::Tensor& x) { return block->forward(x, Pass{}); };
          },
          [&](const std::string& name) { return name_in_block(name, architecture.genes); });
    }
    ++checked;
  }
  EXPECT_EQ(checked, 4);
}

void expect_model(const Json& record, const Way& way) {
  const auto what = record.at("id").get<std::string>() + " " + way.text();
  const auto& layers = record.at("settings").at("layers");
  std::vector<Mechanism> stack;
  for (const auto& layer : layers) stack.push_back(layer_of(layer));
  auto architecture = architecture_of(record, stack, layers.at(0).at("hidden"));
  const auto& shapes = record.at("shapes");
  architecture.vocabulary = shapes.at("vocabulary");
  TransformerArray model({architecture}, way.mode);
  const auto name_of = [&](const std::string& name) { return name_in_model(name, architecture); };
  auto parameters = model.parameters();  // handles to the model's tensors
  fill(parameters, record, way.type, name_of, what);
  if (::testing::Test::HasFatalFailure()) return;
  const std::vector<std::int64_t> sizes{1, shapes.at("batch"), shapes.at("tokens")};
  const auto tokens = tensor_of(record.at("tokens"), sizes).to(at::kLong);
  const auto targets = tensor_of(record.at("targets"), sizes).to(at::kLong);
  const std::vector<std::int64_t> logits{sizes[0], sizes[1], sizes[2], architecture.vocabulary};
  expect_near(model.logits(tokens, Pass{}), tensor_of(record.at("y"), logits), way,
              what + ": logits");
  const auto loss = model.loss(tokens, targets, Pass{});
  expect_near(loss, tensor_of(record.at("loss"), {1}), way, what + ": loss");
  loss.sum().backward();
  expect_gradients(parameters, record, way, name_of, what);
}

TEST_F(SpaceFrameGolden, Models) {
  int checked = 0;
  for (const auto& record : test::space_cases("model")) {
    if (later_cases().contains(record.at("id"))) continue;
    for (const auto& way : ways()) expect_model(record, way);
    ++checked;
  }
  EXPECT_EQ(checked, 3);
}

TEST_F(SpaceFrameGolden, Sinusoids) {
  int checked = 0;
  for (const auto& record : test::space_cases("table")) {
    if (record.at("option") != "sinusoids") continue;
    const auto tokens = record.at("settings").at("tokens").get<std::int64_t>();
    Architecture architecture;
    architecture.width = record.at("settings").at("width");
    architecture.genes.set("position_embedding", "sinusoidal");
    for (const auto& way : ways()) {
      std::vector<Parameter> parameters;
      PositionEmbedding positions(architecture, ParameterScope(parameters, way.mode));
      ASSERT_EQ(parameters.size(), 1U);
      parameters.front().tensor.set_data(at::ones({1, 1}, at::TensorOptions(way.type)));
      expect_near(positions(tokens),
                  tensor_of(record.at("values"), {1, tokens, architecture.width}), way,
                  "sinusoids");
    }
    ++checked;
  }
  EXPECT_EQ(checked, 1);
}

}  // namespace
}  // namespace nas::nn
