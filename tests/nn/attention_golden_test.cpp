#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/cuda.h>
#include <torch/types.h>

#include "genotype/mechanism_name.hpp"
#include "golden_cases.hpp"
#include "lone_layer.hpp"
#include "places.hpp"

namespace nas::nn {
namespace {

using test::lines_of;
using test::tensor_of;

/// The reference drew its parameters, x and w as float32 and computed on them in float64. Nine
/// digits name a float32 uniquely, so reading it as one gives back the very number.
torch::Tensor input_of(const nlohmann::json& json, torch::IntArrayRef shape) {
  return tensor_of(json, shape).to(at::kFloat).to(at::kDouble);
}

void expect_close(const torch::Tensor& given, const torch::Tensor& theirs,
                  const std::string& what) {
  const auto ours = given.cpu();
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const double error = (ours - theirs).abs().max().item<double>();
  const double allowed = 1e-6 * theirs.abs().max().item<double>() + 1e-10;
  EXPECT_LE(error, allowed) << what;
}

std::string label_of(const nlohmann::json& gene) {
  std::string label;
  for (const auto* name : {"similarity", "normalization", "gating", "temperature_mode"})
    label += gene.at(name).get<std::string>() + "|";
  return label + (gene.at("use_bias").get<bool>() ? "bias" : "no_bias") + "|0";
}

void expect_reference_result(const nlohmann::json& record, NumericalMode mode,
                             torch::Device device = torch::kCPU) {
  const auto label = label_of(record.at("gene")) + " " + std::string(to_string(mode));
  const AttentionShape shape{record.at("d_model"), record.at("heads"), record.at("length")};
  std::vector<Parameter> parameters;
  test::LoneLayer layer(parse_mechanism(label_of(record.at("gene")), Semantics::published), shape,
                        Semantics::published,
                        ParameterScope(parameters, mode, first_models(1), device));
  move_to(parameters, device, at::kDouble);
  ASSERT_EQ(parameters.size(), record.at("params").size()) << label;
  for (auto& parameter : parameters) {
    const auto& values = record.at("params").at(parameter.name);
    ASSERT_EQ(values.at("shape").get<std::vector<std::int64_t>>(),
              parameter.tensor.sizes().slice(1).vec())
        << label << " " << parameter.name;
    parameter.tensor.set_data(input_of(values, parameter.tensor.sizes()).to(device));
  }
  const std::vector<std::int64_t> sizes{record.at("batch"), shape.context, shape.width};
  auto x = input_of(record.at("x"), sizes).to(device);
  x.requires_grad_(true);

  const auto y = layer.forward(x, at::zeros_like(x), Pass{}, 0);
  expect_close(y, tensor_of(record.at("y"), sizes), label + " y");
  (y * input_of(record.at("w"), sizes).to(device)).sum().backward();
  expect_close(x.grad(), tensor_of(record.at("grad_x"), sizes), label + " grad_x");
  for (const auto& parameter : parameters) {
    const auto& expected = record.at("param_grads").at(parameter.name);
    if (expected.is_null()) continue;
    ASSERT_TRUE(parameter.tensor.grad().defined()) << label << " " << parameter.name;
    expect_close(parameter.tensor.grad(), tensor_of(expected, parameter.tensor.sizes()),
                 label + " gradient of " + parameter.name);
  }
}

/// Calls run(record) for all cases.
template <class Run>
void for_cases(const Run& run) {
  const char* given = std::getenv("NAS_GOLDEN");
  const std::string path =
      given != nullptr ? given : source_folder() + "/tests/data/attention_reference.jsonl.gz";
  auto lines = lines_of(path);
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) run(nlohmann::json::parse(line));
  EXPECT_EQ(cases, 192) << path;
}

TEST(AttentionGolden, EqualsThePublishedModulesInValuesAndGradients) {
  for_cases([](const nlohmann::json& record) {
    expect_reference_result(record, NumericalMode::reference);
    expect_reference_result(record, NumericalMode::exact);
  });
}

TEST(AttentionGolden, EqualsThemOnACudaDevice) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "there is no CUDA device";
  for_cases([](const nlohmann::json& record) {
    expect_reference_result(record, NumericalMode::reference, torch::kCUDA);
    expect_reference_result(record, NumericalMode::exact, torch::kCUDA);
  });
}

}  // namespace
}  // namespace nas::nn
