#include "genotype/costs.hpp"
#include "nn/mixers.hpp"

namespace nas::nn {

namespace {

/// Heads of two kinds in one layer: the sum of a layer of attention and a recurrent one, of half of the heads each. That
/// is one layer, the rows of whose q, k, v and the columns of whose O are theirs.
///
/// @see Dong et al. (2024), Hymba, arXiv:2411.13676.
class Pair final : public Mixer {
 public:
  Pair(const MixerContext& context, const ParameterScope& scope) {
    const auto& kind = mixer_kinds().at("pair");
    std::vector<std::vector<Mechanism>> halves;  // of each model
    for (const auto& mechanism : context.mechanisms) {
      halves.push_back(kind.parts(mechanism, context.shape));
    }
    const Architecture sized{.width = context.shape.width,
                             .heads = context.shape.heads,
                             .context = context.shape.context};
    for (std::size_t i = 0; i < halves.front().size(); ++i) {
      auto own = context;
      for (std::size_t r = 0; r < halves.size(); ++r) own.mechanisms[r] = halves[r][i];
      const auto& half = own.mechanisms.front();
      own.shape = attention_shape(sized, half);
      const auto& mixer = half.word("mixer");
      const auto& name = mixer_kinds().at(mixer).scope;
      halves_.push_back(mixers().at(mixer).make(own, scope.child(name.empty() ? mixer : name)));
    }
  }

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override {
    const auto own = alone(pass);
    const auto first = halves_[0]->forward(x, residual, own, site);
    return first + halves_[1]->forward(x, residual, own, site);
  }

  [[nodiscard]] std::unique_ptr<State> start(std::int64_t room) const override {
    auto state = std::make_unique<States>();
    for (const auto& half : halves_) state->of_halves.push_back(half->start(room));
    return state;
  }
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                     State& state) override {
    const auto own = alone(pass);
    auto& states = dynamic_cast<States&>(state).of_halves;
    const auto first = halves_[0]->step(x, residual, own, *states[0]);
    return first + halves_[1]->step(x, residual, own, *states[1]);
  }

 private:
  struct States final : State {
    [[nodiscard]] std::unique_ptr<State> copy() const override {
      auto copy = std::make_unique<States>();
      for (const auto& state : of_halves) copy->of_halves.push_back(state->copy());
      return copy;
    }
    [[nodiscard]] std::int64_t numbers() const override {
      std::int64_t sum = 0;
      for (const auto& state : of_halves) sum += state->numbers();
      return sum;
    }
    std::vector<std::unique_ptr<State>> of_halves{};
  };

  /// A pass in which no layer gives its keys to later ones: those of half of the heads are no layer's.
  static Pass alone(Pass pass) {
    pass.shared = nullptr;
    return pass;
  }

  std::vector<std::unique_ptr<Mixer>> halves_;
};

NAS_REGISTER_MIXER(Pair, .key = "pair",
                   .summary =
                       "heads of attention and heads with a state in one layer, as many of each "
                       "(Dong et al. 2024, Hymba)");

}  // namespace

}  // namespace nas::nn
