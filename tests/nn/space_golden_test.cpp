// The attention options of the wide space against naive loops in double: values and gradients. The
// cases are not part of the repository: NAS_GOLDEN_SPACE names their file.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "lone_layer.hpp"

namespace nas::nn {
namespace {

using Json = nlohmann::json;

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

/// The cases of a kind, by id; nothing where the file is not named.
std::map<std::string, Json> cases_of(const std::string& kind) {
  std::map<std::string, Json> cases;
  const char* path = std::getenv("NAS_GOLDEN_SPACE");
  if (path == nullptr) return cases;
  const std::string command = "gzip -dcf '" + std::string(path) + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16U);
  for (std::size_t size = 0;
       (size = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;) {
    text.append(buffer.data(), size);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto record = Json::parse(line);
    if (record.at("kind") != kind) continue;
    const auto id = record.at("id").get<std::string>();
    cases[id] = std::move(record);
  }
  EXPECT_FALSE(cases.empty()) << path << " has no cases of kind " << kind;
  return cases;
}

#define SKIP_WITHOUT_CASES()                                                      \
  if (std::getenv("NAS_GOLDEN_SPACE") == nullptr) {                               \
    GTEST_SKIP() << "NAS_GOLDEN_SPACE does not name a file of reference results"; \
  }

Mechanism layer_of(const Json& record) {
  static const std::map<std::string, std::string Mechanism::*> words{
      {"similarity", &Mechanism::similarity},
      {"normalization", &Mechanism::normalization},
      {"temperature", &Mechanism::temperature},
      {"gating", &Mechanism::gating},
      {"bias", &Mechanism::bias},
      {"pattern", &Mechanism::pattern},
      {"position", &Mechanism::position},
      {"decay", &Mechanism::decay},
      {"qk_norm", &Mechanism::qk_norm},
      {"head_norm", &Mechanism::head_norm}};
  static const std::map<std::string, std::int64_t Mechanism::*> integers{
      {"heads", &Mechanism::heads},
      {"kv_heads", &Mechanism::kv_heads},
      {"conv", &Mechanism::conv},
      {"window", static_cast<std::int64_t Mechanism::*>(&Mechanism::window)},
      {"globals", static_cast<std::int64_t Mechanism::*>(&Mechanism::globals)}};
  const auto& genes = record.at("genes");
  Mechanism mechanism;
  for (const auto& [name, member] : words) mechanism.*member = genes.at(name).get<std::string>();
  for (const auto& [name, member] : integers) {
    mechanism.*member = genes.at(name).get<std::int64_t>();
  }
  mechanism.rope_base = genes.at("rope_base");
  mechanism.rope_fraction = genes.at("rope_fraction");
  mechanism.t5_buckets = record.at("hyper").at("t5_buckets");
  mechanism.t5_distance = record.at("hyper").at("t5_distance");
  return mechanism;
}

/// Numbers in float64: those that go in have three decimals, so that the text is exact.
torch::Tensor tensor_of(const Json& values, torch::IntArrayRef shape) {
  return at::tensor(values.get<std::vector<double>>(), at::TensorOptions(at::kDouble)).view(shape);
}

/// What the cases call one of our parameters.
std::string their_name(const std::string& ours) {
  return ours == "temperature.theta" ? "temperature" : ours;
}

void expect_close(const torch::Tensor& ours, const torch::Tensor& theirs, torch::ScalarType type,
                  const std::string& what) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const double tolerance = type == at::kDouble ? 1e-9 : 2e-5;
  const double size = std::max(1.0, theirs.abs().max().item<double>());
  EXPECT_LE((ours.to(at::kDouble) - theirs).abs().max().item<double>(), tolerance * size) << what;
}

void expect_reference_result(const Json& record, NumericalMode mode, torch::ScalarType type) {
  const auto mechanism = layer_of(record);
  const auto& sizes = record.at("shapes");
  AttentionShape shape;
  shape.width = sizes.at("width");
  shape.heads = mechanism.heads;
  shape.kv_heads = mechanism.kv_heads;
  shape.context = sizes.at("tokens");
  std::vector<Parameter> parameters;
  test::LoneLayer layer(mechanism, shape, Semantics::corrected, ParameterScope(parameters, mode));
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
  expect_close(y, tensor_of(record.at("y"), of_x), type, "y");
  (y * tensor_of(record.at("w"), of_x).to(type)).sum().backward();
  expect_close(x.grad(), tensor_of(record.at("grad_x"), of_x), type, "grad_x");
  for (const auto& parameter : parameters) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    expect_close(parameter.tensor.grad(),
                 tensor_of(record.at("param_grads").at(their_name(parameter.name)),
                           parameter.tensor.sizes()),
                 type, "gradient of " + parameter.name);
  }
}

TEST(SpaceGolden, LayersEqualNaiveLoopsInValuesAndGradients) {
  SKIP_WITHOUT_CASES();
  int compared = 0;
  for (const auto& [id, record] : cases_of("mixer")) {
    if (is_later(record)) continue;
    ++compared;
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
      for (const auto type : {at::kDouble, at::kFloat}) {
        SCOPED_TRACE(id + " " + std::string(to_string(mode)) + " " + at::toString(type));
        expect_reference_result(record, mode, type);
      }
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

TEST(SpaceGolden, TablesAreWhatTheFormulasGive) {
  SKIP_WITHOUT_CASES();
  for (const auto& [id, record] : cases_of("table")) {
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
