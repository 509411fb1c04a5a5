#include "models/agreement.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/format.hpp"
#include "nn/decoder.hpp"
#include "ops/product.hpp"

namespace nas {

namespace {

using Sizes = std::vector<std::int64_t>;

/// The model's tensors of one file, each compared as soon as it is there.
class Comparison {
 public:
  Comparison(nn::Transformer& model, SafetensorsFile& file)
      : model_(model), architecture_(model.array().architectures().front()), file_(file) {}

  Agreement run() {
    ids_ = tensor("ids", {-1, -1}, /*integers=*/true);
    require_tokens("ids", ids_, 1);
    check_names();
    nn::Pass pass;
    pass.watch = [this](std::int64_t behind, const torch::Tensor& stream) {
      const auto name = "hidden." + std::to_string(behind);
      if (has(name)) compare(name, stream[0], tensor(name, stream[0].sizes().vec()));
    };
    const at::NoGradGuard no_grad;
    const auto greedy = has("greedy") ? tensor("greedy", {-1}, true) : torch::Tensor();
    if (greedy.defined()) require_tokens("greedy", greedy, 0);
    require_context(greedy.defined() ? greedy.numel() : 0);
    const auto hidden = model_.array().hidden(ids_.unsqueeze(0), pass);
    if (has("logits") || has("nll")) compare_logits(hidden);
    if (greedy.defined()) continue_greedily(greedy);
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool has(const std::string& name) const { return file_.tensors().contains(name); }

  [[noreturn]] static void refuse(const std::string& name, const std::string& what) {
    throw InputError("tensor " + name + what);
  }

  /// @param sizes  -1: any above 0.
  torch::Tensor tensor(const std::string& name, const Sizes& sizes, bool integers = false) {
    if (!has(name)) refuse(name, " is missing");
    const auto& stored = file_.tensors().at(name);
    const bool fits = stored.shape.size() == sizes.size() &&
                      std::equal(sizes.begin(), sizes.end(), stored.shape.begin(),
                                 [](auto size, auto is) { return size < 0 ? is > 0 : is == size; });
    if (!fits) {
      refuse(name, " has shape " + nlohmann::json(stored.shape).dump() + ", must have " +
                       nlohmann::json(sizes).dump() + (sizes.front() < 0 ? ", -1 any" : ""));
    }
    if ((stored.type == "I64") != integers)
      refuse(name, " is of type " + stored.type + ", must be " + (integers ? "I64" : "F32 or F64"));
    auto values = file_.read(stored);
    if (!integers && !values.isfinite().all().item<bool>())
      refuse(name, " has a number that is none");
    return values;
  }

  void require_tokens(const std::string& name, const torch::Tensor& tokens,
                      std::int64_t least) const {
    const auto most = architecture_.vocabulary - 1;
    if (tokens.numel() < least || tokens.min().item<std::int64_t>() < 0 ||
        tokens.max().item<std::int64_t>() > most) {
      refuse(name, " must hold tokens in [0, " + std::to_string(most) + "]");
    }
  }

  void check_names() const {
    bool compares = false;
    for (const auto& [name, stored] : file_.tensors()) {
      std::int64_t layer = -1;
      const auto* end = name.data() + name.size();
      const bool stream = name.starts_with("hidden.") &&
                          std::from_chars(name.data() + 7, end, layer).ptr == end && layer >= 0 &&
                          layer <= architecture_.layers;
      const bool other = name == "logits" || name == "nll" || name == "greedy";
      compares |= stream || other;
      if (!stream && !other && name != "ids") {
        refuse(name, " is none of ids, logits, nll, greedy and hidden.0 to hidden." +
                         std::to_string(architecture_.layers));
      }
    }
    if (!compares) throw InputError("has ids alone, must have logits, nll, greedy or hidden.N");
  }

  void require_context(std::int64_t further) const {
    const auto tokens = ids_.size(1) + further;
    if (architecture_.genes.word("position_embedding") == "learned" &&
        tokens > architecture_.context) {
      throw InputError("has " + std::to_string(tokens) + " tokens, the model's context " +
                       std::to_string(architecture_.context));
    }
  }

  void compare(const std::string& name, const torch::Tensor& ours, const torch::Tensor& theirs) {
    auto& all = found_.deviations;
    if (all.empty() || all.back().tensor != name) all.push_back({name});
    auto& deviation = all.back();
    const auto difference =
        (ours.to(at::kDouble) - theirs.to(at::kDouble)).abs().max().item<double>();
    const auto largest = theirs.abs().max().item<double>();
    // A difference that is no number stays.
    if (!(difference <= deviation.largest)) deviation.largest = difference;
    largest_ = std::max(all.size() == known_ ? largest_ : 0.0, largest);
    known_ = all.size();
    deviation.share = deviation.largest == 0.0 ? 0.0 : deviation.largest / largest_;
  }

  /// Sequence by sequence, since logits are many.
  void compare_logits(const nn::Hidden& hidden) {
    const auto batch = ids_.size(0), tokens = ids_.size(1);
    const bool logits = has("logits"), scored = has("nll");
    if (scored && tokens < 2) refuse("nll", " needs sequences of two tokens");
    const auto theirs =
        logits ? tensor("logits", {batch, tokens, architecture_.vocabulary}) : torch::Tensor();
    double nll = 0.0;
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto ours =
          nn::linear(hidden.features.narrow(1, b, 1), hidden.output, {}, hidden.mode)[0][0];
      if (logits) compare("logits", ours, theirs[b]);
      if (!scored) continue;
      const auto targets = ids_[b].slice(0, 1).unsqueeze(-1);
      nll -= ours.slice(0, 0, -1)
                 .to(at::kDouble)
                 .log_softmax(-1)
                 .gather(-1, targets)
                 .sum()
                 .item<double>();
    }
    if (!scored) return;
    nll /= static_cast<double>(batch * (tokens - 1));
    compare("nll", at::full({1}, nll, at::kDouble), tensor("nll", {1}));
  }

  void continue_greedily(const torch::Tensor& greedy) {
    nn::Decoder decoder(model_, ids_.size(1) + greedy.numel());
    torch::Tensor logits;
    for (const auto& token : ids_[0].unbind(0)) logits = decoder.step(token.view({1}));
    for (std::int64_t i = 0; i < greedy.numel(); ++i) {
      if (i > 0) logits = decoder.step(logits.argmax(-1));
      found_.greedy.push_back(logits.argmax(-1).item<std::int64_t>());
      found_.expected_greedy.push_back(greedy[i].item<std::int64_t>());
    }
  }

  nn::Transformer& model_;
  const Architecture& architecture_;
  SafetensorsFile& file_;
  torch::Tensor ids_{};
  Agreement found_{};
  double largest_ = 0.0;   // number of the tensor that is compared
  std::size_t known_ = 0;  // deviations
};

}  // namespace

std::string Agreement::difference() const {
  constexpr double kLargestShare = 2e-5;
  for (const auto& deviation : deviations) {
    if (deviation.share <= kLargestShare) continue;
    return "tensor " + deviation.tensor + " differs by " + shortest(deviation.share) +
           " of its largest number, must by at most 2e-05";
  }
  const auto [ours, theirs] =
      std::mismatch(greedy.begin(), greedy.end(), expected_greedy.begin(), expected_greedy.end());
  if (ours == greedy.end()) return {};
  return "greedy text differs from its token " + std::to_string(ours - greedy.begin()) +
         " on: " + std::to_string(*ours) + ", must be " + std::to_string(*theirs);
}

Agreement agreement(nn::Transformer& model, SafetensorsFile& expected) {
  return Comparison(model, expected).run();
}

}  // namespace nas
