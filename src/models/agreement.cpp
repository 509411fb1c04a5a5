#include "models/agreement.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/words.hpp"
#include "nn/decoder.hpp"

namespace nas {

namespace {

using Sizes = std::vector<std::int64_t>;

/// Of one file, whose tensors are compared as soon as the model has them.
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
      const auto name = stream_name(behind);
      if (has(name)) compare(name, stream[0]);
    };
    const at::NoGradGuard no_grad;
    const auto greedy = has("greedy") ? tensor("greedy", {-1}, true) : torch::Tensor();
    if (greedy.defined()) require_tokens("greedy", greedy, 0);
    require_context(greedy.defined() ? greedy.numel() : 0);
    if (has("logits") || has("nll")) {
      compare_logits(model_.logits(ids_, pass));
    } else {
      model_.features(ids_, pass);
    }
    if (greedy.defined()) continue_greedily(greedy);
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool has(const std::string& name) const { return file_.tensors().contains(name); }

  static std::string stream_name(std::int64_t behind) { return "hidden." + std::to_string(behind); }

  [[noreturn]] static void refuse(const std::string& name, const std::string& what) {
    throw InputError("tensor " + beginning(name) + what);
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
    auto values = read_tensor(file_, stored);
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
      bool stream = false;
      for (std::int64_t i = 0; i <= architecture_.layers; ++i) stream |= name == stream_name(i);
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

  void compare(const std::string& name, const torch::Tensor& ours) {
    const auto theirs = tensor(name, ours.sizes().vec()).to(at::kDouble);
    const auto difference = (ours.to(at::kDouble) - theirs).abs().max().item<double>();
    const auto largest = theirs.abs().max().item<double>();
    found_.deviations.push_back({name, difference, difference == 0.0 ? 0.0 : difference / largest});
  }

  /// @param logits  (B, T, V).
  void compare_logits(const torch::Tensor& logits) {
    if (has("logits")) compare("logits", logits);
    if (!has("nll")) return;
    if (ids_.size(1) < 2) refuse("nll", " needs sequences of two tokens");
    const auto likely = logits.slice(1, 0, -1).to(at::kDouble).log_softmax(-1);
    compare("nll", -likely.gather(-1, ids_.slice(1, 1).unsqueeze(-1)).mean().view({1}));
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
