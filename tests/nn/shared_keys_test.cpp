// Layers that read the keys of earlier ones, and windows by head: against loops over tokens, with their gradients, in
// arrays, and what they cost.

#include "array_step.hpp"
#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "prelude.hpp"

namespace nas::nn {
namespace {

constexpr Integer kWidth = 16, kHeads = 4, kGroups = 2, kHeadWidth = 4, kTokens = 12;

/// A layer of attention and nothing else, as the reference sees it.
struct Layer {
  Integer giver = -1;  ///< of its keys; -1: own
  Integer window = 99, globals = 0, full_groups = 0;
};

struct Case {
  std::string name;
  std::vector<Layer> layers;
};

Architecture model_of(const std::string& layers, double dropout = 0.0) {
  const Architecture frame{
      .width = kWidth, .heads = kHeads, .context = kTokens, .vocabulary = 13, .dropout = dropout};
  return canonical(
      parse_model("model{position_embedding=none,norm=rms,bias=none}/" + layers, frame));
}

std::vector<Case> cases() {
  const auto attn = [](const std::string& genes) {
    return "attn{kv_heads=2,position=rope,dropout=0" + genes + "}+none";
  };
  const std::string shared = ",keys=shared";
  const std::string window = ",pattern=window,window=3,globals=1";
  return {{attn("") + "/" + attn(shared), {{}, {.giver = 0}}},
          {attn("") + "/" + attn(shared + window), {{}, {.giver = 0, .window = 3, .globals = 1}}},
          {attn(",pattern=window,window=4,globals=2") + "/" + attn(shared + window),
           {{.window = 4, .globals = 2}, {.giver = 0, .window = 3, .globals = 1}}},
          // What sees itself alone keeps nothing that could be read.
          {attn("") + "/" + attn(",pattern=window,window=1") + "/" + attn(shared),
           {{}, {.window = 1}, {.giver = 0}}},
          {attn(window + ",full_groups=2") + "/" + attn(shared + window + ",full_groups=2"),
           {{.window = 3, .globals = 1, .full_groups = 2},
            {.giver = 0, .window = 3, .globals = 1, .full_groups = 2}}},
          {attn(window + ",full_groups=1") + "/" + attn(""),
           {{.window = 3, .globals = 1, .full_groups = 1}, {}}}};
}

using Tensors = std::map<std::string, torch::Tensor>;

torch::Tensor normed(const torch::Tensor& h, const torch::Tensor& gain) {
  return h / (h.square().mean(-1, true) + 1e-5).sqrt() * gain;
}

/// u (T, heads, d), entries m and m + d/2 turned.
torch::Tensor turned(const torch::Tensor& u) {
  const auto m = at::arange(kHeadWidth / 2, at::kDouble);
  const auto angles =
      at::arange(u.size(0), at::kDouble).view({-1, 1, 1}) * at::pow(1e4, -2.0 * m / kHeadWidth);
  const auto a = u.narrow(-1, 0, kHeadWidth / 2), b = u.narrow(-1, kHeadWidth / 2, kHeadWidth / 2);
  return at::cat({a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()}, -1);
}

/// Logits (T, V), query by query.
torch::Tensor naive(const Tensors& weights, const std::vector<Layer>& layers,
                    const torch::Tensor& tokens) {
  auto h = weights.at("embedding.weight").index_select(0, tokens);
  std::vector<std::pair<torch::Tensor, torch::Tensor>> keys;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto& layer = layers[l];
    const auto of = [&](const std::string& name) {
      return weights.at("layers." + std::to_string(l) + ".attention" + name + ".weight");
    };
    const auto x = normed(h, of("_norm"));
    const auto heads = [&](const std::string& name) {
      return at::matmul(x, of(name).t()).view({kTokens, -1, kHeadWidth});
    };
    const auto q = turned(heads(".q_proj"));
    keys.push_back(layer.giver < 0 ? std::pair(turned(heads(".k_proj")), heads(".v_proj"))
                                   : keys[static_cast<std::size_t>(layer.giver)]);
    std::vector<torch::Tensor> outputs;
    for (Integer i = 0; i < kTokens; ++i) {
      for (Integer head = 0; head < kHeads; ++head) {
        const auto group = head / (kHeads / kGroups);
        std::vector<torch::Tensor> scores, values;
        for (Integer j = 0; j <= i; ++j) {
          const bool all = (layer.full_groups >> group & 1) == 1;
          if (!all && i - j >= layer.window && j >= layer.globals) continue;
          scores.push_back((q[i][head] * keys.back().first[j][group]).sum() / 2.0);
          values.push_back(keys.back().second[j][group]);
        }
        outputs.push_back(at::matmul(at::stack(scores).softmax(0), at::stack(values)));
      }
    }
    h = h + at::matmul(at::cat(outputs).view({kTokens, kWidth}), of(".out_proj").t());
  }
  return at::matmul(normed(h, weights.at("final_norm.weight")), weights.at("embedding.weight").t());
}

void randomise(Transformer& model) {
  const at::NoGradGuard no_grad;
  model.to(at::kCPU, at::kDouble);
  const auto generator = make_generator(at::kCPU, 3);
  for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, 0.5, generator);
}

TEST(SharedKeys, AndWindowsByHeadAreThoseOfALoopWithTheirGradients) {
  const auto tokens =
      at::randint(13, {kTokens}, make_generator(at::kCPU, 4), at::TensorOptions(at::kLong));
  const auto by = at::randn({kTokens, 13}, make_generator(at::kCPU, 5), at::kDouble);
  for (const auto& [name, layers] : cases()) {
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
      SCOPED_TRACE(name);
      Transformer model(model_of(name), mode);
      randomise(model);
      Tensors weights;
      for (const auto& [parameter, tensor] : model.parameters())
        weights[parameter] = tensor[0].detach().clone().requires_grad_();
      const auto expected = naive(weights, layers, tokens);
      const auto found = model.logits(tokens.unsqueeze(0), Pass{})[0];
      EXPECT_TRUE(at::allclose(found, expected, 1e-10, 1e-10));
      (expected * by).sum().backward();
      (found * by).sum().backward();
      for (const auto& [parameter, tensor] : model.parameters()) {
        EXPECT_TRUE(at::allclose(tensor.grad()[0], weights.at(parameter).grad(), 1e-9, 1e-9))
            << parameter;
      }
    }
  }
}

TEST(SharedKeys, InAnArrayAreThoseOfEachModel) {
  const std::string both = "attn{kv_heads=2,pattern=window,window=3,full_groups=1,position=rope}/";
  const std::string shared =
      "attn{kv_heads=2,keys=shared,pattern=window,window=3,full_groups=1,position=rope}";
  const auto models = {model_of(both + shared, 0.1), model_of(both + shared, 0.1)};
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
    const auto step = [&](const std::vector<std::size_t>& places) {
      return test::step_of(models, places, at::kFloat, at::kCPU, test::From::spread, mode);
    };
    const auto whole = step({0, 1});
    for (std::size_t i = 0; i < 2; ++i) {
      const auto alone = step({i});
      EXPECT_TRUE(at::equal(whole.losses[static_cast<Integer>(i)], alone.losses[0]));
      for (const auto& [name, gradient] : alone.gradients[0])
        EXPECT_TRUE(at::equal(whole.gradients[i].at(name), gradient)) << name;
    }
  }
  // The same is dropped in all modes.
  const auto losses = [&](NumericalMode mode) {
    return test::step_of(models, {0}, at::kDouble, at::kCPU, test::From::spread, mode).losses;
  };
  EXPECT_TRUE(at::allclose(losses(NumericalMode::reference), losses(NumericalMode::exact), 1e-9));
  // Keys pass between blocks of all models, or of none.
  EXPECT_TRUE(alike(*models.begin(), *models.begin()));
  EXPECT_FALSE(
      alike(model_of("attn/recurrent/attn{keys=shared}"), model_of("attn/attn/attn{keys=shared}")));
  EXPECT_FALSE(alike(model_of("attn/attn{keys=shared}"), model_of("attn/attn")));
}

TEST(SharedKeys, CostWhatTheModelHas) {
  for (const auto& one : cases()) {
    const auto architecture = model_of(one.name);
    Integer numbers = 0;
    for (const auto& [name, tensor] : Transformer(architecture).parameters())
      numbers += tensor.numel();
    EXPECT_EQ(num_parameters(architecture), numbers) << one.name;
    EXPECT_TRUE(check_causality(architecture).causal) << one.name;
    EXPECT_TRUE(check_prefixes(architecture).consistent) << one.name;
  }
  const auto own = model_of("2*attn{kv_heads=2}"),
             shared = model_of("attn{kv_heads=2}/attn{kv_heads=2,keys=shared}");
  constexpr Integer kKeys = 2 * kGroups * kHeadWidth;  // and values, of a token
  EXPECT_EQ(2 * state_bytes(shared, 9), state_bytes(own, 9));
  EXPECT_EQ(num_parameters(own) - num_parameters(shared), kWidth * kKeys);
  EXPECT_EQ(forward_flops(own) - forward_flops(shared), 2.0 * kTokens * kWidth * kKeys);
  EXPECT_EQ(state_bytes(model_of("2*attn{kv_heads=2,pattern=window,window=3,full_groups=2}"), 9),
            2 * 4 * kKeys / 2 * (9 + 3));
  EXPECT_EQ(model_of("attn{pattern=window,window=3,full_groups=15}"), model_of("attn"));
}

TEST(SharedKeys, AreRefusedWhereThereAreNone) {
  for (const auto& [layers, said] : std::vector<std::pair<std::string, std::string>>{
           {"attn{keys=shared}", "keys = shared, must have an earlier layer"},
           {"recurrent/attn{keys=shared}", "keys = shared, must have an earlier layer"},
           {"attn{pattern=window,window=1}/attn{keys=shared}", "must have an earlier layer"},
           {"attn/attn{keys=shared,kv_heads=2}", "kv_heads = 2, must be the 4 of layer 0"},
           {"attn/attn{keys=shared,head_width=8}", "head_width = 8, must be the 4 of layer 0"},
           {"attn{pattern=window,window=3}/attn{keys=shared}", "pattern = full, must be window"},
           {"attn{pattern=window,window=3}/attn{keys=shared,pattern=window,window=4}",
            "window = 4, must be at most the 3"},
           {"attn{pattern=window,window=3}/attn{keys=shared,pattern=window,window=3,globals=1}",
            "globals = 1, must be at most the 0"},
           {"attn/attn{keys=shared,pattern=window,window=3,full_groups=1}",
            "full_groups = 1, must be the 0"},
           {"attn/attn{keys=shared,conv=3}", "conv = 3, must be 0 beside keys = shared"},
           {"attn/attn{keys=shared,decay=scalar}", "decay = scalar, must be none"},
           {"attn/attn{keys=shared,pattern=lsh,block=3}", "pattern = lsh, must be another"},
           {"attn{pattern=window,window=3,full_groups=16}", "full_groups = 16, must be at most 15"},
           {"attn{pattern=window,window=3,full_groups=1,decay=scalar}", "must be none beside"},
           {"attn/recurrent{keys=shared}", "unknown gene of mixer recurrent 'keys'"}}) {
    EXPECT_THAT(message_of<InputError>([&layers = layers] { (void)model_of(layers); }),
                HasSubstr(said))
        << layers;
  }
}

}  // namespace
}  // namespace nas::nn
