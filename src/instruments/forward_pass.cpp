#include "instruments/forward_pass.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/cuda.h>

#include "core/error.hpp"
#include "genotype/costs.hpp"
#include "genotype/mixer_kind.hpp"
#include "nn/decoder.hpp"
#include "nn/mixers.hpp"
#include "nn/transformer.hpp"
#include "ops/memory.hpp"
#include "ops/model_failure.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {

namespace {

constexpr std::uint64_t kSeed = 1;

constexpr double kMost = std::numeric_limits<std::int32_t>::max();

Architecture with_context(Architecture architecture, std::int64_t context) {
  require_in_range("context", static_cast<double>(context), 0, kMost);
  if (context > 0) architecture.context = context;
  require_valid(architecture);
  return architecture;
}

struct Calls {
  std::function<void()> run;
  std::function<void()> prepare{};  ///< nothing: there is nothing to prepare
};

/// Tokens of all sequences, (B, L).
torch::Tensor some_tokens(const Architecture& architecture, const PassSettings& settings) {
  return at::arange(settings.batch * architecture.context, at::TensorOptions(at::kLong))
      .remainder(architecture.vocabulary)
      .view({settings.batch, architecture.context})
      .to(torch::Device(settings.device));
}

Calls model_pass(const Architecture& architecture, const PassSettings& settings) {
  const torch::Device device(settings.device);
  auto model = std::make_shared<Transformer>(architecture, settings.numerical_mode);
  model->initialise(kSeed, 0);
  model->to(device);
  const auto tokens = some_tokens(architecture, settings);
  return {[model, tokens] { (void)model->logits(tokens, Pass{}); }};
}

/// A model that has read all tokens of some sequences but the last.
class LastStep {
 public:
  LastStep(const Architecture& architecture, const PassSettings& settings)
      : model_(started(architecture, torch::Device(settings.device))),
        before_(model_, architecture.context) {
    const auto tokens = some_tokens(architecture, settings);
    for (std::int64_t t = 0; t + 1 < architecture.context; ++t) {
      (void)before_.step(tokens.select(1, t));
    }
    last_ = tokens.select(1, architecture.context - 1).clone();
  }

  void prepare() { next_.emplace(before_.copy()); }
  void run() { (void)next_->step(last_); }

 private:
  static Transformer started(const Architecture& architecture, torch::Device device) {
    Transformer model(architecture, NumericalMode::reference);
    model.initialise(kSeed, 0);
    model.to(device);
    return model;
  }

  Transformer model_;
  Decoder before_;
  std::optional<Decoder> next_;
  torch::Tensor last_;  // (B)
};

Calls step_pass(const Architecture& architecture, const PassSettings& settings) {
  const auto step = std::make_shared<LastStep>(architecture, settings);
  return {[step] { step->run(); }, [step] { step->prepare(); }};
}

/// Whether a mixer's maps are weights of scores, not what a state amounts to.
bool attends(const MixerKind& kind) {
  return kind.has_maps && std::any_of(kind.genes.begin(), kind.genes.end(), [](const auto& gene) {
           return gene.first == "normalization";
         });
}

/// @throws InputError if no layer is one of attention.
const Mechanism& first_attention(const Architecture& architecture) {
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    const auto& layer = architecture.layer(i);
    if (attends(mixer_kinds().at(layer.word("mixer")))) return layer;
  }
  throw InputError("part = attention: no layer of the model is one of attention");
}

/// Whether no layer mixes positions: attention takes no time, as of the control without a mixer.
bool mixes_nothing(const Architecture& architecture) {
  return std::all_of(architecture.stack.begin(), architecture.stack.end(),
                     [](const Mechanism& layer) { return layer.word("mixer") == "none"; });
}

Calls attention_pass(const Architecture& architecture, const PassSettings& settings) {
  if (mixes_nothing(architecture)) return {[] {}};
  const torch::Device device(settings.device);
  set_float_products(device, settings.numerical_mode);
  std::vector<Parameter> parameters;
  const auto& mechanism = first_attention(architecture);
  const std::shared_ptr<Mixer> layer =
      mixers()
          .at(mechanism.word("mixer"))
          .make({.mechanisms = {mechanism},
                 .shape = attention_shape(architecture, mechanism),
                 .semantics = architecture.semantics},
                ParameterScope(parameters, settings.numerical_mode));
  initialise(parameters, {{kSeed, 0}});
  move_to(parameters, device, at::kFloat);
  // The output of a freshly initialised LayerNorm: mean 0, variance 1.
  const auto x = at::randn({1, settings.batch, architecture.context, architecture.width},
                           make_generator(at::kCPU, kSeed), at::TensorOptions(at::kFloat))
                     .to(device);
  Pass pass;
  if (mechanism.integer("value_embedding") == 1) pass.value_rows = x;  // of their shape
  return {[layer, x, pass] { (void)layer->forward(x, x, pass, 0); }};
}

Calls calls_of(const Architecture& architecture, const PassSettings& settings) {
  return of_model([&] {
    switch (settings.part) {
      case Part::model:
        return model_pass(architecture, settings);
      case Part::attention:
        return attention_pass(architecture, settings);
      case Part::step:
        return step_pass(architecture, settings);
    }
    throw std::logic_error("no such part");
  });
}

}  // namespace

Part parse_part(const std::string& text) {
  if (text == "model") return Part::model;
  if (text == "attention") return Part::attention;
  throw InputError("part = " + text + ", must be model or attention");
}

struct ForwardPass::Impl {
  Impl(const Architecture& given, const PassSettings& settings)
      : architecture(with_context(given, settings.context)), device(settings.device) {
    require_in_range("batch", static_cast<double>(settings.batch), 1, kMost);
    // An earlier training run would have installed it: the same memory for every candidate.
    install_cpu_allocator();
    const at::NoGradGuard no_grad;
    calls = calls_of(architecture, settings);
    prepare();
  }

  void prepare() const {
    if (!calls.prepare) return;
    const at::NoGradGuard no_grad;
    of_model(calls.prepare);
    wait();
  }

  void wait() const {
    if (!device.is_cuda()) return;
    of_model([this] { torch::cuda::synchronize(device.index()); });
  }

  Architecture architecture;
  torch::Device device;
  Calls calls;
};

ForwardPass::ForwardPass(const Architecture& architecture, const PassSettings& settings)
    : impl_(std::make_unique<Impl>(architecture, settings)) {}
ForwardPass::~ForwardPass() = default;
ForwardPass::ForwardPass(ForwardPass&&) noexcept = default;
ForwardPass& ForwardPass::operator=(ForwardPass&&) noexcept = default;

void ForwardPass::prepare() { impl_->prepare(); }

void ForwardPass::enqueue() {
  const at::NoGradGuard no_grad;
  of_model(impl_->calls.run);
}

void ForwardPass::operator()() {
  enqueue();
  impl_->wait();
}

std::int64_t ForwardPass::context() const { return impl_->architecture.context; }

ThreadScope::ThreadScope(int threads) : before_(at::get_num_threads()) {
  require_in_range("threads", threads, 1, kMost);
  at::set_num_threads(threads);
}

ThreadScope::~ThreadScope() { at::set_num_threads(before_); }

}  // namespace nas::nn
