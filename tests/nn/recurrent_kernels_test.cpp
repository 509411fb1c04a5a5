// The kernels of recurrent layers compute what operations compute, with any vectors, in any array and
// with any number of threads.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "kernels/instruction_set.hpp"
#include "nn/recurrence.hpp"
#include "ops/convolution.hpp"
#include "ops/head_gate.hpp"
#include "ops/log_decay.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

using Tensors = std::vector<torch::Tensor>;
using Compute = std::function<torch::Tensor(const Tensors&)>;

constexpr double kNone = -std::numeric_limits<double>::infinity();

struct Case {
  std::string name;
  Tensors in{};                    ///< (R, ...), float64
  Compute kernel{}, operations{};  ///< the same
};

torch::Tensor draw(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, make_generator(at::kCPU, seed), at::TensorOptions(at::kDouble));
}

Case convolution(std::int64_t channels, std::int64_t taps, std::int64_t width) {
  constexpr double kEpsilon = 1e-6;
  Case made{.name = "convolution " + std::to_string(channels) + " " + std::to_string(taps) + " " +
                    std::to_string(width)};
  made.in = {draw({3, 2, 19, channels}, 1)};
  if (taps > 0) made.in.push_back(draw({3, channels, taps}, 2));
  made.kernel = [width](const Tensors& in) {
    return activated_convolution(in[0], in.size() > 1 ? in[1] : torch::Tensor(), width, kEpsilon);
  };
  made.operations = [=](const Tensors& in) {
    auto sum = in[0];
    if (taps > 0) {
      const auto padded = at::constant_pad_nd(in[0], {0, 0, taps - 1, 0});
      sum = at::zeros_like(in[0]);
      for (std::int64_t a = 0; a < taps; ++a) {
        sum = sum + padded.narrow(2, a, 19) * in[1].select(-1, a).unsqueeze(1).unsqueeze(1);
      }
    }
    const auto active = at::silu(sum);
    if (width == 0) return active;
    const auto vectors = active.view({3, 2, 19, -1, width});
    return (vectors / (vectors.square().sum(-1, true) + kEpsilon).sqrt()).flatten(3);
  };
  return made;
}

Case gate(GateForm form, std::int64_t logits, std::int64_t width) {
  return {.name = "gate " + std::to_string(logits) + " " + std::to_string(width),
          .in = {draw({3, 2, 7, 4, width}, 1), draw({3, 2, 7, 4, logits}, 2) * 3.0},
          .kernel = [form](const Tensors& in) { return gated_heads(in[0], in[1], form, 1.5); },
          .operations =
              [form](const Tensors& in) {
                return in[0] * (form == GateForm::silu ? at::silu(in[1]) : in[1].sigmoid()) * 1.5;
              }};
}

Case softplus(double least, std::int64_t group) {
  return {.name = "softplus " + std::to_string(least) + " " + std::to_string(group),
          .in = {draw({3, 2, 70, 4 * group}, 1) * 3.0, draw({3, 4 * group}, 2), draw({3, 4}, 3)},
          .kernel = [=](const Tensors& in) { return softplus_decay(in[0], in[1], in[2], least); },
          .operations =
              [=](const Tensors& in) {
                const auto steps = at::softplus(in[0] + in[1].unsqueeze(1).unsqueeze(1));
                const auto rates = in[2].exp().repeat_interleave(group, 1);
                return (-rates.unsqueeze(1).unsqueeze(1) * steps).clamp_min(least);
              }};
}

Case log_sigmoid() {
  return {
      .name = "log_sigmoid",
      .in = {draw({3, 2, 70, 20}, 1) * 30.0, draw({3, 20}, 2)},
      .kernel = [](const Tensors& in) { return sigmoid_decay(in[0], in[1], 4.0, -5.0); },
      .operations =
          [](const Tensors& in) {
            return (at::log_sigmoid(in[0] + in[1].unsqueeze(1).unsqueeze(1)) / 4.0).clamp_min(-5.0);
          }};
}

/// @param decays  of each token; 0: none.
Case recurrent(std::int64_t features, std::int64_t width, std::int64_t decays, bool erases) {
  const bool by_channel = decays > 1;
  Case made{.name = "recurrence " + std::to_string(features) + " " + std::to_string(width) + " " +
                    std::to_string(decays) + (erases ? " erases" : "")};
  made.in = {draw({3, 2, 2, 37, features}, 1) * 0.4, draw({3, 2, 2, 37, features}, 2) * 0.4,
             draw({3, 2, 2, 37, width}, 3)};
  if (decays > 0) made.in.push_back(-draw({3, 2, 2, 37, decays}, 4).abs());
  if (erases) made.in.push_back(draw({3, 2, 2, 37, features}, 5) * 0.4);
  const auto sequence_of = [=](const Tensors& in) {
    return Recurrence{.queries = in[0],
                      .keys = in[1],
                      .values = in[2],
                      .log_decays = decays > 0 ? in[3] : torch::Tensor(),
                      .erased = erases ? in.back() : torch::Tensor(),
                      .by_channel = by_channel};
  };
  const auto both = [](const Recurred& result) {
    return at::cat({result.outputs.flatten(1), result.state.flatten(1)}, 1);
  };
  made.kernel = [=](const Tensors& in) { return both(recurrence(sequence_of(in))); };
  made.operations = [=](const Tensors& in) { return both(by_chunks(sequence_of(in))); };
  return made;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::int64_t taps : {0, 1, 4, 8}) {
    for (const auto& [channels, width] :
         {std::pair<std::int64_t, std::int64_t>(128, 32), {128, 0}, {15, 5}, {33, 0}}) {
      all.push_back(convolution(channels, taps, width));
    }
  }
  for (const std::int64_t width : {5, 32}) {
    for (const auto form : {GateForm::sigmoid, GateForm::silu}) {
      all.push_back(gate(form, 1, width));
      all.push_back(gate(form, width, width));
    }
  }
  for (const std::int64_t group : {1, 17}) {
    all.push_back(softplus(-5.0, group));
    all.push_back(softplus(kNone, group));
  }
  all.push_back(log_sigmoid());
  for (const bool erases : {false, true}) {
    for (const auto& [features, width] :
         {std::pair<std::int64_t, std::int64_t>(32, 32), {5, 33}, {40, 3}}) {
      for (const std::int64_t decays : {std::int64_t{0}, std::int64_t{1}, features}) {
        all.push_back(recurrent(features, width, decays, erases));
      }
    }
  }
  return all;
}

/// The result and the gradients w.r.t. what goes in.
Tensors pass(const Compute& compute, const Tensors& in, at::ScalarType type) {
  Tensors leaves;
  for (const auto& x : in) leaves.push_back(x.to(type).detach().clone().requires_grad_(true));
  const auto y = compute(leaves);
  const auto like = y.sizes().slice(1);  // the same direction for each model
  y.backward(draw(like, 9).to(type).expand(y.sizes()).contiguous());
  Tensors results{y.detach()};
  for (const auto& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

void expect_near(const Tensors& actual, const Tensors& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].sizes(), expected[i].sizes()) << i;
    const auto error = (actual[i].to(at::kDouble) - expected[i]).abs().max().item<double>();
    EXPECT_LE(error, tolerance * (1.0 + expected[i].abs().max().item<double>())) << i;
  }
}

TEST(RecurrentKernels, ComputeWhatOperationsCompute) {
  const auto all = kernels::instruction_sets();
  ASSERT_FALSE(all.empty());
  for (const auto& of : cases()) {
    const auto expected = pass(of.operations, of.in, at::kDouble);
    for (const auto& name : all) {
      SCOPED_TRACE(of.name + ", " + name);
      kernels::use_instruction_set(name);
      expect_near(pass(of.kernel, of.in, at::kDouble), expected, 1e-12);
      expect_near(pass(of.kernel, of.in, at::kFloat), expected, 1e-5);
    }
  }
  kernels::use_instruction_set(all.front());
}

TEST(RecurrentKernels, AModelDependsOnNeitherItsMatesNorThreads) {
  const int before = at::get_num_threads();
  for (const auto& of : cases()) {
    SCOPED_TRACE(of.name);
    at::set_num_threads(1);
    const auto array = pass(of.kernel, of.in, at::kFloat);
    for (std::int64_t r = 0; r < 3; ++r) {
      Tensors one;
      for (const auto& x : of.in) one.push_back(x.slice(0, r, r + 1));
      const auto alone = pass(of.kernel, one, at::kFloat);
      for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(alone[i][0].equal(array[i][r]));
    }
    at::set_num_threads(2);
    const auto threaded = pass(of.kernel, of.in, at::kFloat);
    for (std::size_t i = 0; i < array.size(); ++i) EXPECT_TRUE(threaded[i].equal(array[i])) << i;
  }
  at::set_num_threads(before);
}

// A training that diverges must show.
TEST(RecurrentKernels, KeepNaN) {
  for (const auto& of : cases()) {
    for (std::size_t i = 0; i < 2 * of.in.size(); ++i) {
      Tensors in;
      for (const auto& x : of.in)
        in.push_back(x.to(i % 2 == 0 ? at::kFloat : at::kDouble, false, true));
      in[i / 2].view({-1})[-1] = std::numeric_limits<double>::quiet_NaN();
      EXPECT_TRUE(of.kernel(in).isnan().any().item<bool>()) << of.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace nas::nn
