// Gradients of whole models against those of a reference, each parameter by itself.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "array_step.hpp"
#include "genotype/component.hpp"
#include "genotype/slots.hpp"

namespace nas::nn::test {

/// Models of every similarity with every normalization, and of every similarity with every
/// temperature under softmax, which no temperature leaves unchanged; gatings, biases and dropout
/// take turns. In canonical form: what another option voids has a gradient of 0.
inline std::vector<Architecture> models_of_all_pairs(std::int64_t context) {
  const auto gatings = components().keys("gating");
  const auto temperatures = components().keys("temperature");
  std::vector<Architecture> models;
  const auto add = [&](const std::string& similarity, const std::string& normalization,
                       const std::string& temperature) {
    const auto i = models.size();
    auto model =
        small(similarity + "|" + normalization + "|" + gatings[i % gatings.size()] + "|" +
              temperature + (i % 4 < 2 ? "|bias|" : "|no_bias|") + (i % 3 == 0 ? "0.2" : "0"));
    model.stack = {canonical(model.layer(0), model.semantics)};
    model.context = context;
    models.push_back(model);
  };
  for (const auto& similarity : components().keys("similarity")) {
    for (const auto& normalization : components().keys("normalization")) {
      // No score is positive: nothing has a gradient.
      if (similarity == "l2" && normalization.starts_with("relu")) continue;
      add(similarity, normalization, temperatures[models.size() % temperatures.size()]);
    }
    for (const auto& temperature : temperatures) add(similarity, "softmax", temperature);
  }
  return models;
}

/// Every third of them, with every option.
inline std::vector<Architecture> third_of_all_pairs(std::int64_t context) {
  const auto all = models_of_all_pairs(context);
  std::vector<Architecture> third;
  // From row to row of normalizations another third.
  const auto row =
      components().keys("normalization").size() + components().keys("temperature").size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((i + i / row) % 3 == 0) third.push_back(all[i]);
  }
  for (const auto& gene : component_genes()) {
    std::set<std::string> options;
    for (const auto& model : third) options.insert(model.stack.front().word(gene));
    EXPECT_EQ(options.size(), components().keys(gene).size()) << gene;
  }
  return third;
}

/// Those whose attention kernels compute, and those where none does: an array has one form.
inline std::array<std::vector<Architecture>, 2> by_fused_form(
    const std::vector<Architecture>& models) {
  std::array<std::vector<Architecture>, 2> parts;
  for (const auto& model : models) {
    parts.at(fused_forms(model.stack.front()).attention ? 0 : 1).push_back(model);
  }
  return parts;
}

/// The Euclidean norm of the gradient by all parameters.
inline double whole_norm(const std::map<std::string, torch::Tensor>& gradients) {
  double square = 0.0;
  for (const auto& [name, gradient] : gradients) square += gradient.square().sum().item<double>();
  return std::sqrt(square);
}

/// The names of the parameters whose true gradient is not 0 but for rounding. That w.r.t. the bias
/// of keys is 0 under softmax; that w.r.t. temperatures under relu_norm is what the small constant
/// in its denominator leaves of 0. No others are.
///
/// @param truth  gradients of a model in double precision.
inline std::set<std::string> with_gradient(const std::map<std::string, torch::Tensor>& truth) {
  std::set<std::string> names;
  for (const auto& [name, gradient] : truth) {
    if (gradient.norm().item<double>() > 1e-7 * whole_norm(truth)) {
      names.insert(name);
    } else {
      EXPECT_TRUE(name.find("k_proj.bias") != std::string::npos ||
                  name.find("temp") != std::string::npos)
          << name;
    }
  }
  return names;
}

/// Each parameter's gradient is within a share of the norm of its own expected one: a fault in one
/// that is small beside others does not hide behind them. Where the true gradient is 0, ours is
/// rounding of the whole gradient.
///
/// @param truth  of the same model, in double precision.   @param type  in which ours was computed.
inline void expect_gradients(const std::map<std::string, torch::Tensor>& ours,
                             const std::map<std::string, torch::Tensor>& expected,
                             const std::map<std::string, torch::Tensor>& truth,
                             torch::ScalarType type, const std::string& model) {
  const double bound = type == at::kDouble ? 1e-9 : 1e-3;
  const double rounding = (type == at::kDouble ? 1e-12 : 1e-5) * whole_norm(truth);
  const auto checked = with_gradient(truth);
  ASSERT_EQ(ours.size(), truth.size()) << model;
  for (const auto& [name, gradient] : ours) {
    const auto own = gradient.to(at::kDouble);
    if (!checked.contains(name)) {
      EXPECT_LE(own.norm().item<double>(), rounding) << model << " " << name;
      continue;
    }
    const auto theirs = expected.at(name).to(at::kDouble);
    const double norm = theirs.norm().item<double>();
    EXPECT_LE((own - theirs).norm().item<double>() / norm, bound)
        << model << " " << name << ", of norm " << norm;
  }
}

}  // namespace nas::nn::test
