// Layers of attention of all options, with what tests of options compare.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "genotype/mixer_kind.hpp"
#include "genotype/slots.hpp"
#include "lone_layer.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn::test {

using Values = std::map<std::string, torch::Tensor>;

inline const at::TensorOptions kDouble(at::kDouble);

inline torch::Tensor noise(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::empty(sizes, kDouble).normal_(0.0, 1.0, make_generator(at::kCPU, seed));
}

inline Mechanism vanilla() {
  Mechanism mechanism;
  mechanism.set("attention_dropout", 0.0);
  mechanism.set("bias", "none");
  return mechanism;
}

/// @param changes  "gene=choice,gene=number".
inline Mechanism with(const std::string& changes) {
  auto mechanism = vanilla();
  std::istringstream text(changes);
  for (std::string field; std::getline(text, field, ',');) {
    const auto equals = field.find('=');
    choose(slot(field.substr(0, equals)), field.substr(equals + 1), Semantics::corrected,
           mechanism);
  }
  return mechanism;
}

/// Each by its changes.
inline std::map<std::string, Mechanism> with_each(const std::vector<std::string>& changes) {
  std::map<std::string, Mechanism> mechanisms;
  for (const auto& of_one : changes) mechanisms[of_one] = with(of_one);
  return mechanisms;
}

/// One layer of width 16 in float64 with random parameters of its own for each name.
struct Layer {
  explicit Layer(const Mechanism& mechanism, NumericalMode mode = NumericalMode::reference,
                 std::int64_t heads = 4)
      : layer(mechanism, shape_of(mechanism, heads), Semantics::corrected,
              ParameterScope(parameters, mode)) {
    move_to(parameters, at::kCPU, at::kDouble);
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters) {
      parameter.tensor.copy_(
          noise(parameter.tensor.sizes(), std::hash<std::string>()(parameter.name)).mul(0.5));
    }
  }

  static AttentionShape shape_of(const Mechanism& mechanism, std::int64_t heads) {
    AttentionShape shape;
    shape.width = 16;
    shape.heads = heads;
    shape.kv_heads = mechanism.integer("kv_heads");
    shape.context = 9;
    return shape;
  }

  torch::Tensor& operator[](const std::string& name) {
    for (auto& parameter : parameters) {
      if (parameter.name == name) return parameter.tensor;
    }
    throw std::invalid_argument("no parameter " + name);
  }
  void set(const std::string& name, const torch::Tensor& values) {
    const at::NoGradGuard no_grad;
    (*this)[name].copy_(values);
  }
  void fill(const std::string& name, double value) { set(name, at::scalar_tensor(value, kDouble)); }

  torch::Tensor operator()(const torch::Tensor& x) {
    return layer.forward(x, at::zeros_like(x), Pass{}, 0).detach();
  }

  std::vector<Parameter> parameters;
  nas::test::LoneLayer layer;
};

inline const torch::Tensor& input() {
  static const auto x = noise({2, 9, 16}, 7);
  return x;
}

inline void expect_equal(Layer& a, Layer& b, double tolerance = 1e-12) {
  const auto difference = (a(input()) - b(input())).abs().max().item<double>();
  EXPECT_LE(difference, tolerance);
}

inline void expect_different(Layer& a, Layer& b) {
  EXPECT_GT((a(input()) - b(input())).abs().max().item<double>(), 1e-4);
}

/// An option is none of vanilla attention and computes the same in both ways; a later token changes
/// nothing, and neither does its absence.
inline void expect_causal_option(const Mechanism& mechanism, double tolerance = 1e-12) {
  Layer reference(mechanism), exact(mechanism, NumericalMode::exact), without(vanilla());
  expect_different(reference, without);
  expect_equal(reference, exact, tolerance);
  for (auto* const layer_of_mode : {&reference, &exact}) {
    auto& layer = *layer_of_mode;
    const auto y = layer(input());
    EXPECT_TRUE(y.isfinite().all().item<bool>());
    for (std::int64_t tokens = 1; tokens < 9; ++tokens) {
      EXPECT_TRUE(layer(input().slice(1, 0, tokens)).allclose(y.slice(1, 0, tokens), 1e-10, 1e-10))
          << tokens;
      auto changed = input().clone();
      changed.slice(1, tokens).mul_(-3.0);
      EXPECT_TRUE(layer(changed).slice(1, 0, tokens).allclose(y.slice(1, 0, tokens), 1e-10, 1e-10))
          << tokens;
    }
  }
}

/// Whether one layer of an array computes both.
inline bool same_shapes(const Mechanism& a, const Mechanism& b) {
  const auto shape_key = mixer_kinds().at("attn").shape_key;
  return shape_key(a) == shape_key(b);
}

/// Output and gradients of each model of an array of layers in float32, by name.
inline std::vector<Values> step_of(const std::vector<Mechanism>& mechanisms,
                                   const std::vector<std::size_t>& places, NumericalMode mode,
                                   std::int64_t tokens) {
  std::vector<Mechanism> chosen;
  std::vector<StartSeed> seeds;
  std::vector<torch::Tensor> inputs;
  Pass pass{.training = true, .seeds = {}};
  for (const auto place : places) {
    chosen.push_back(mechanisms[place]);
    seeds.push_back({place, 0});
    inputs.push_back(noise({3, tokens, 16}, place).to(at::kFloat));
    pass.seeds.push_back(place);
  }
  std::vector<Parameter> parameters;
  AttentionLayer layer(chosen, Layer::shape_of(chosen.front(), 4), Semantics::corrected,
                       ParameterScope(parameters, mode, first_models(std::ssize(chosen))));
  initialise(parameters, seeds);
  auto x = at::stack(inputs);
  x.requires_grad_(true);
  const auto y = layer.forward(x, x, pass, 0);
  (y * y.sin()).sum().backward();
  std::vector<Values> results(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto r = static_cast<std::int64_t>(i);
    results[i] = {{"y", y[r].detach()}, {"x", x.grad()[r]}};
  }
  for (const auto& parameter : parameters) {
    for (std::size_t i = 0; i < parameter.models.size(); ++i) {
      results[static_cast<std::size_t>(parameter.models[i])][parameter.name] =
          parameter.tensor.grad()[static_cast<std::int64_t>(i)];
    }
  }
  return results;
}

inline void expect_same_alone(const std::vector<Mechanism>& mechanisms, NumericalMode mode,
                              std::int64_t tokens = 9) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < mechanisms.size(); ++i) places.push_back(i);
  const auto together = step_of(mechanisms, places, mode, tokens);
  for (const auto place : places) {
    const auto alone = step_of(mechanisms, {place}, mode, tokens).front();
    ASSERT_EQ(together[place].size(), alone.size()) << place;
    for (const auto& [name, values] : together[place]) {
      EXPECT_TRUE(values.equal(alone.at(name))) << place << " " << name;
    }
  }
}

}  // namespace nas::nn::test
