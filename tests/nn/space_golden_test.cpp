// The attention options of the wide space against naive loops in double: values and gradients. The
// cases are not part of the repository: NAS_GOLDEN_SPACE names their file.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "golden_cases.hpp"
#include "lone_layer.hpp"

namespace nas::nn {
namespace {

using test::Json;
using test::tensor_of;
using test::Way;

/// Cases of options that no module computes yet.
const std::set<std::string>& later_options() {
  static const std::set<std::string> later{"difference",
                                           "difference_rope_sink",
                                           "cope",
                                           "path",
                                           "mla",
                                           "mla_rope",
                                           "lsh",
                                           "pair_softmax_elu1",
                                           "stick_breaking",
                                           "strided",
                                           "bigbird",
                                           "gated_conv",
                                           "retention_decays",
                                           "lambda_init",
                                           "pattern_strided"};
  return later;
}

/// Tables of parts outside attention, which have a test of their own.
const std::set<std::string>& tables_of_models() {
  static const std::set<std::string> others{"sinusoids"};
  return others;
}

bool is_later(const Json& record) {
  return later_options().contains(record.at("option").get<std::string>()) ||
         record.value("mixer", "attn") == "recurrent";
}

Mechanism layer_of(const Json& record) {
  Mechanism layer;
  test::read_genes(record.at("genes"), layer);
  layer.t5_buckets = record.at("hyper").at("t5_buckets");
  layer.t5_distance = record.at("hyper").at("t5_distance");
  return layer;
}

/// What the cases call one of our parameters.
std::string their_name(const std::string& ours) {
  return ours == "temperature.theta" ? "temperature" : ours;
}

/// Relative to the largest element: single ones of float are a little farther off.
void expect_close(const torch::Tensor& ours, const torch::Tensor& theirs, const Way& way,
                  const std::string& what) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const double size = std::max(1.0, theirs.abs().max().item<double>());
  EXPECT_LE((ours.to(at::kDouble) - theirs).abs().max().item<double>(), way.tolerance * size)
      << what;
}

void expect_reference_result(const Json& record, const Way& way) {
  const auto type = way.type;
  const auto mechanism = layer_of(record);
  const auto& sizes = record.at("shapes");
  AttentionShape shape;
  shape.width = sizes.at("width");
  shape.heads = mechanism.heads;
  shape.kv_heads = mechanism.kv_heads;
  shape.context = sizes.at("tokens");
  std::vector<Parameter> parameters;
  test::LoneLayer layer(mechanism, shape, Semantics::corrected,
                        ParameterScope(parameters, way.mode));
  move_to(parameters, at::kCPU, type);
  ASSERT_EQ(parameters.size(), record.at("params").size());
  for (auto& parameter : parameters) {
    const auto& values = record.at("params").at(their_name(parameter.name));
    ASSERT_EQ(values.at("shape").get<std::vector<std::int64_t>>(),
              parameter.tensor.sizes().slice(1).vec())
        << parameter.name;
    parameter.tensor.set_data(tensor_of(values.at("values"), parameter.tensor.sizes()).to(type));
  }
  const std::vector<std::int64_t> of_x{sizes.at("batch"), shape.context, shape.width};
  auto x = tensor_of(record.at("x"), of_x).to(type);
  x.requires_grad_(true);

  const auto y = layer.forward(x, at::zeros_like(x), Pass{}, 0);
  expect_close(y, tensor_of(record.at("y"), of_x), way, "y");
  (y * tensor_of(record.at("w"), of_x).to(type)).sum().backward();
  expect_close(x.grad(), tensor_of(record.at("grad_x"), of_x), way, "grad_x");
  for (const auto& parameter : parameters) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    expect_close(parameter.tensor.grad(),
                 tensor_of(record.at("param_grads").at(their_name(parameter.name)),
                           parameter.tensor.sizes()),
                 way, "gradient of " + parameter.name);
  }
}

using SpaceGolden = test::SpaceCases;

TEST_F(SpaceGolden, LayersEqualNaiveLoopsInValuesAndGradients) {
  int compared = 0;
  for (const auto& record : test::space_cases("mixer")) {
    if (is_later(record)) continue;
    ++compared;
    for (const auto& way : test::ways()) {
      SCOPED_TRACE(record.at("id").get<std::string>() + " " + way.text());
      expect_reference_result(record, way);
    }
  }
  EXPECT_GE(compared, 36);
}

LayerContext context_of(std::int64_t heads, const Sizes& sizes) {
  LayerContext context;
  context.shape.heads = heads;
  context.shape.width = 8 * heads;
  context.shape.sizes = sizes;
  return context;
}

void expect_slopes(const Json& table) {
  for (const auto& [heads, slopes] : table.items()) {
    std::vector<Parameter> parameters;
    const auto alibi =
        positions().at("alibi").make(context_of(std::stoll(heads), {}), ParameterScope(parameters));
    const auto ours = alibi->distance_biases(2, at::empty({1}, at::TensorOptions(at::kDouble)));
    const auto expected = tensor_of(slopes, {std::stoll(heads)});
    EXPECT_TRUE(ours[0].select(-1, 1).neg().allclose(expected, 1e-12, 0.0)) << heads;
    EXPECT_EQ(ours.select(-1, 0).abs().max().item<double>(), 0.0) << heads;
  }
}

void expect_buckets(const Json& record) {
  Sizes sizes;
  sizes.t5_buckets = record.at("settings").at("buckets");
  sizes.t5_distance = record.at("settings").at("furthest");
  std::vector<Parameter> parameters;
  const auto t5 = positions().at("t5").make(context_of(1, sizes), ParameterScope(parameters));
  const at::NoGradGuard no_grad;
  auto& table = parameters.front().tensor;
  table.copy_(at::arange(sizes.t5_buckets).view({1, -1, 1}));
  const auto expected = record.at("values").get<std::vector<double>>();
  const auto ours = t5->distance_biases(std::ssize(expected), table)[0][0];
  EXPECT_TRUE(ours.to(at::kDouble).equal(tensor_of(record.at("values"), ours.sizes())));
}

void expect_visible(const Json& record) {
  Sizes sizes;
  sizes.window = record.at("settings").at("window");
  sizes.globals = record.at("settings").at("globals");
  std::vector<Parameter> parameters;
  const auto window =
      patterns().at("window").make(context_of(1, sizes), ParameterScope(parameters));
  const auto& rows = record.at("values");
  const auto visible = window->visible(std::ssize(rows), at::kCPU);
  for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
    std::vector<std::int64_t> keys;
    for (std::int64_t j = 0; j < std::ssize(rows); ++j) {
      if (visible[i][j].item<bool>()) keys.push_back(j);
    }
    EXPECT_EQ(keys, rows[static_cast<std::size_t>(i)].get<std::vector<std::int64_t>>()) << i;
    EXPECT_EQ(window->ranges()->count(i), std::ssize(keys)) << i;
  }
}

TEST_F(SpaceGolden, TablesAreWhatTheFormulasGive) {
  for (const auto& record : test::space_cases("table")) {
    const auto id = record.at("id").get<std::string>();
    if (is_later(record) || tables_of_models().contains(id)) continue;
    SCOPED_TRACE(id);
    if (id == "alibi_slopes") {
      expect_slopes(record.at("values"));
    } else if (id == "t5_buckets") {
      expect_buckets(record);
    } else if (id == "pattern_window") {
      expect_visible(record);
    } else {
      ADD_FAILURE() << "no formula is compared with this table";
    }
  }
}

}  // namespace
}  // namespace nas::nn
