// The options of layers of the wide space against naive loops in double: values and gradients. The
// cases are not part of the repository: NAS_GOLDEN_SPACE names their file.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "genotype/architecture_name.hpp"
#include "golden_cases.hpp"
#include "nn/mixers.hpp"
#include "nn/parts/block_pattern.hpp"
#include "nn/parts/hashed_keys.hpp"
#include "nn/parts/head_maps.hpp"
#include "nn/recurrent_layer.hpp"

namespace nas::nn {
namespace {

using test::Json;
using test::tensor_of;
using test::Way;

/// Tables of parts outside attention, which have a test of their own.
const std::set<std::string>& tables_of_models() {
  static const std::set<std::string> others{"sinusoids"};
  return others;
}

/// Pattern lsh with the rotations of a case.
class GivenRotations final : public HashedKeys {
 public:
  GivenRotations(const LayerContext& context, const ParameterScope& /*scope*/)
      : HashedKeys(given, context.shape.sizes.integer("pattern_block")) {}
  static torch::Tensor given;
};
torch::Tensor GivenRotations::given;
NAS_REGISTER_PATTERN(GivenRotations, .key = "given_rotations", .summary = "lsh");

/// Pattern bigbird with the random blocks of a case, of each head and own block.
class GivenBlocks final : public BlockPattern {
 public:
  GivenBlocks(const LayerContext& context, const ParameterScope& /*scope*/)
      : BlockPattern(context.shape) {}
  static Json given;

 private:
  [[nodiscard]] std::vector<std::int64_t> drawn(std::int64_t head,
                                                std::int64_t own) const override {
    return given.at(static_cast<std::size_t>(head))
        .at(static_cast<std::size_t>(own))
        .get<std::vector<std::int64_t>>();
  }
};
Json GivenBlocks::given;
NAS_REGISTER_PATTERN(GivenBlocks, .key = "given_blocks", .summary = "bigbird");

/// A layer of mixer pair, whose halves are layers of their own.
Mechanism pair_of(const Json& genes) {
  Mechanism layer;
  layer.set("mixer", "pair").set("heads", genes.at("heads").get<std::int64_t>());
  for (const auto& [half, mixer] : {std::pair("first", "attn"), std::pair("second", "recurrent")}) {
    Mechanism own;
    own.set("mixer", mixer).set("attention_dropout", 0.0);
    test::read_genes(genes.at(half), own);
    layer.set("bias", own.word("bias"));
    own.set("bias", "bias").set("heads", std::int64_t{0});
    layer.set(half, layer_text(own, {}, false));
  }
  return layer;
}

Mechanism layer_of(const Json& record) {
  if (record.value("mixer", "") == "pair") return pair_of(record.at("genes"));
  Mechanism layer;
  layer.set("attention_dropout", 0.0);
  layer.set("mixer", record.value("mixer", "attn"));
  test::read_genes(record.at("genes"), layer);
  const auto& hyper = record.at("hyper");
  layer.set("t5_buckets", hyper.at("t5_buckets").get<std::int64_t>());
  layer.set("t5_distance", hyper.at("t5_distance").get<std::int64_t>());
  layer.set("cope_positions", hyper.at("cope_positions").get<std::int64_t>());
  layer.set("decay_rank", hyper.at("decay_rank").get<std::int64_t>());
  layer.set("decay_tau", hyper.at("decay_tau").get<double>());
  layer.set("favor_features", hyper.at("favor_features").get<std::int64_t>());
  if (layer.word("pattern") == "lsh") {
    layer.set("pattern", "given_rotations");
    const std::int64_t width = record.at("shapes").at("width");
    GivenRotations::given = tensor_of(
        record.at("constants").at("rotations"),
        {layer.integer("rounds"), width / layer.integer("heads"), layer.integer("buckets") / 2});
  }
  if (layer.word("pattern") == "bigbird") {
    layer.set("pattern", "given_blocks");
    GivenBlocks::given = record.at("constants").at("random_blocks");
  }
  return layer;
}

/// What the cases call one of our parameters.
std::string their_name(const std::string& ours) {
  if (ours == "temperature.theta") return "temperature";
  const auto dot = ours.find('.');
  const auto half = ours.substr(0, dot);
  return half == "attention" || half == "recurrent" ? ours.substr(dot + 1) : ours;
}

/// What a case says of one of our parameters, (1, ...): of a half of a pair, of half of the rows of q, k and v, and of
/// the columns of O.
/// @param values  of the whole.
torch::Tensor own_part(const Json& record, const std::string& ours, const Json& values) {
  const auto name = their_name(ours);
  const auto shape = record.at("params").at(name).at("shape").get<std::vector<std::int64_t>>();
  const auto whole = tensor_of(values, shape).unsqueeze(0);
  if (record.value("mixer", "") != "pair") return whole;
  const bool first = ours.starts_with("attention.");
  return whole.chunk(2, name.starts_with("out_proj") ? 2 : 1)[first ? 0 : 1].contiguous();
}

/// Relative to the largest element: single ones of float are a little farther off.
void expect_close(const torch::Tensor& ours, const torch::Tensor& theirs, const Way& way,
                  const std::string& what) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const double size = std::max(1.0, theirs.abs().max().item<double>());
  EXPECT_LE((ours.to(at::kDouble) - theirs).abs().max().item<double>(), way.tolerance * size)
      << what;
}

AttentionShape shape_of(const Json& record, const Mechanism& mechanism) {
  const auto& sizes = record.at("shapes");
  AttentionShape shape;
  shape.width = sizes.at("width");
  if (mechanism.integer("heads") > 0) shape.heads = mechanism.integer("heads");
  shape.kv_heads = mechanism.integer("kv_heads");
  shape.context = sizes.at("tokens");
  return shape;
}

/// @param forward     of x (B, T, D).
/// @param parameters  of the layer, which get the case's values.
template <class Forward>
void expect_reference_result(const Json& record, const Way& way, const Forward& forward,
                             std::vector<Parameter>& parameters) {
  const auto type = way.type;
  const auto& sizes = record.at("shapes");
  move_to(parameters, at::kCPU, type);
  const std::size_t parts = record.value("mixer", "") == "pair" ? 2 : 1;
  ASSERT_EQ(parameters.size(), parts * record.at("params").size());
  for (auto& parameter : parameters) {
    const auto& given = record.at("params").at(their_name(parameter.name));
    const auto values = own_part(record, parameter.name, given.at("values"));
    ASSERT_EQ(values.sizes(), parameter.tensor.sizes()) << parameter.name;
    parameter.tensor.set_data(values.to(type));
  }
  const std::vector<std::int64_t> of_x{sizes.at("batch"), sizes.at("tokens"), sizes.at("width")};
  auto x = tensor_of(record.at("x"), of_x).to(type);
  x.requires_grad_(true);

  const auto y = forward(x);
  expect_close(y, tensor_of(record.at("y"), of_x), way, "y");
  (y * tensor_of(record.at("w"), of_x).to(type)).sum().backward();
  expect_close(x.grad(), tensor_of(record.at("grad_x"), of_x), way, "grad_x");
  for (const auto& parameter : parameters) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    expect_close(
        parameter.tensor.grad(),
        own_part(record, parameter.name, record.at("param_grads").at(their_name(parameter.name))),
        way, "gradient of " + parameter.name);
  }
}

/// The same token by token.
void expect_steps(const Json& record, const Way& way, Mixer& layer) {
  const at::NoGradGuard no_grad;
  const auto& sizes = record.at("shapes");
  const std::vector<std::int64_t> of_x{sizes.at("batch"), sizes.at("tokens"), sizes.at("width")};
  const auto x = tensor_of(record.at("x"), of_x).to(way.type).unsqueeze(0);
  const auto kept = layer.start(0);
  std::vector<torch::Tensor> steps;
  for (std::int64_t t = 0; t < x.size(2); ++t) {
    const auto token = x.narrow(2, t, 1);
    steps.push_back(layer.step(token, at::zeros_like(token), Pass{}, *kept));
  }
  expect_close(at::cat(steps, 2)[0], tensor_of(record.at("y"), of_x), way, "y token by token");
}

void expect_mixer(const Json& record, const Way& way) {
  const auto mechanism = layer_of(record);
  std::vector<Parameter> parameters;
  const auto layer = mixers()
                         .at(mechanism.word("mixer"))
                         .make({.mechanisms = {mechanism}, .shape = shape_of(record, mechanism)},
                               ParameterScope(parameters, way.mode));
  const auto forward = [&](const torch::Tensor& x) {
    return layer->forward(x.unsqueeze(0), at::zeros_like(x).unsqueeze(0), Pass{}, 0)[0];
  };
  expect_reference_result(record, way, forward, parameters);
  if (mechanism.word("mixer") == "pair") expect_steps(record, way, *layer);
}

/// Values, gradients, the state, and the same token by token.
void expect_recurrence(const Json& record, const Way& way, std::int64_t chunk) {
  const auto mechanism = layer_of(record);
  std::vector<Parameter> parameters;
  MixerContext context{.mechanisms = {mechanism}, .shape = shape_of(record, mechanism)};
  RecurrentLayer layer(context, ParameterScope(parameters, way.mode));
  layer.set_chunk(chunk);
  if (record.contains("constants") && record.at("constants").contains("projection")) {
    const auto drawn = layer.feature_map()->drawn();
    drawn.copy_(tensor_of(record.at("constants").at("projection"), drawn.sizes()));
  }
  torch::Tensor seen;
  const auto forward = [&](const torch::Tensor& x) {
    seen = x.detach().unsqueeze(0);
    return layer.forward(x.unsqueeze(0), x, Pass{}, 0)[0];
  };
  expect_reference_result(record, way, forward, parameters);
  const at::NoGradGuard no_grad;
  const auto state = tensor_of(record.at("state"),
                               record.at("state").at("shape").get<std::vector<std::int64_t>>());
  expect_close(layer.state_after(seen)[0], state, way, "state");
  expect_steps(record, way, layer);
}

using SpaceGolden = test::SpaceCases;

/// @return how many were compared.
int expect_mixers(const std::vector<Json>& cases) {
  int compared = 0;
  for (const auto& record : cases) {
    ++compared;
    for (const auto& way : test::ways()) {
      SCOPED_TRACE(record.at("id").get<std::string>() + " " + way.text());
      if (record.at("mixer") != "recurrent") {
        expect_mixer(record, way);
        continue;
      }
      for (const std::int64_t chunk : {0, 1, 3, 4}) expect_recurrence(record, way, chunk);
    }
  }
  return compared;
}

TEST_F(SpaceGolden, LayersEqualNaiveLoopsInValuesAndGradients) {
  EXPECT_GE(expect_mixers(test::space_cases("mixer")), 78);
}

TEST(Space2026Golden, LayersEqualNaiveLoopsInValuesAndGradients) {
  const char* file = std::getenv("NAS_GOLDEN_2026");
  if (file == nullptr) {
    GTEST_SKIP() << "NAS_GOLDEN_2026 does not name a file of golden cases of 2026";
  }
  EXPECT_GE(expect_mixers(test::cases_of("mixer", {file})), 9);
}

LayerContext context_of(std::int64_t heads, const Mechanism& sizes) {
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
  Mechanism sizes;
  sizes.set("t5_buckets", record.at("settings").at("buckets").get<std::int64_t>());
  sizes.set("t5_distance", record.at("settings").at("furthest").get<std::int64_t>());
  std::vector<Parameter> parameters;
  const auto t5 = positions().at("t5").make(context_of(1, sizes), ParameterScope(parameters));
  const at::NoGradGuard no_grad;
  auto& table = parameters.front().tensor;
  table.copy_(at::arange(sizes.integer("t5_buckets")).view({1, -1, 1}));
  const auto expected = record.at("values").get<std::vector<double>>();
  const auto ours = t5->distance_biases(std::ssize(expected), table)[0][0];
  EXPECT_TRUE(ours.to(at::kDouble).equal(tensor_of(record.at("values"), ours.sizes())));
}

void expect_decays(const Json& table) {
  for (const auto& [heads, decays] : table.items()) {
    std::vector<Parameter> parameters;
    const auto fixed = state_decays().at("fixed").make(context_of(std::stoll(heads), {}),
                                                       ParameterScope(parameters));
    const auto x = at::empty({1, 1, 1, 1}, at::TensorOptions(at::kDouble));
    const auto ours = fixed->logarithms(x).flatten().exp();
    EXPECT_TRUE(ours.allclose(tensor_of(decays, ours.sizes()), 1e-12, 0.0)) << heads;
  }
}

void expect_starts_of_lambda(const Json& values) {
  auto context = context_of(1, {});
  const auto one = at::ones({1, 1, 1, 1, 1}, at::TensorOptions(at::kDouble));
  for (context.layer = 0; context.layer < std::ssize(values); ++context.layer) {
    std::vector<Parameter> parameters;
    const auto maps = head_maps().at("difference").make(context, ParameterScope(parameters));
    move_to(parameters, at::kCPU, at::kDouble);
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters) parameter.tensor.zero_();
    const double lambda = -maps->combined({at::zeros_like(one), one}).item<double>();
    EXPECT_NEAR(lambda, values[static_cast<std::size_t>(context.layer)].get<double>(), 1e-12);
  }
}

void expect_visible(const Json& record, const char* key) {
  const auto& settings = record.at("settings");
  Mechanism sizes;
  sizes.set("window", settings.value("window", sizes.integer("window")));
  sizes.set("globals", settings.value("globals", sizes.integer("globals")));
  sizes.set("stride", settings.value("stride", sizes.integer("stride")));
  std::vector<Parameter> parameters;
  const auto pattern = patterns().at(key).make(context_of(1, sizes), ParameterScope(parameters));
  const auto& rows = record.at("values");
  const auto visible = pattern->visible(at::empty({1, 1, 1, std::ssize(rows), 8}), 0);
  for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
    std::vector<std::int64_t> keys;
    for (std::int64_t j = 0; j < std::ssize(rows); ++j) {
      if (visible[i][j].item<bool>()) keys.push_back(j);
    }
    EXPECT_EQ(keys, rows[static_cast<std::size_t>(i)].get<std::vector<std::int64_t>>()) << i;
    if (const auto ranges = pattern->ranges()) {
      EXPECT_EQ(ranges->count(i), std::ssize(keys)) << i;
    }
  }
}

TEST_F(SpaceGolden, TablesAreWhatTheFormulasGive) {
  for (const auto& record : test::space_cases("table")) {
    const auto id = record.at("id").get<std::string>();
    if (tables_of_models().contains(id)) continue;
    SCOPED_TRACE(id);
    if (id == "alibi_slopes") {
      expect_slopes(record.at("values"));
    } else if (id == "retention_decays") {
      expect_decays(record.at("values"));
    } else if (id == "t5_buckets") {
      expect_buckets(record);
    } else if (id == "lambda_init") {
      expect_starts_of_lambda(record.at("values"));
    } else if (id == "pattern_window") {
      expect_visible(record, "window");
    } else if (id == "pattern_strided") {
      expect_visible(record, "strided");
    } else {
      ADD_FAILURE() << "no formula is compared with this table";
    }
  }
}

}  // namespace
}  // namespace nas::nn
