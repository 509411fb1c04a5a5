#include "convert/assessment.hpp"

#include <algorithm>
#include <utility>

namespace nas {

namespace {

constexpr std::int64_t kRows = 512;  // of logits that are made at once
constexpr std::int64_t kUntrained = -1;

}  // namespace

Assessment mean_of(std::int64_t count, const std::function<Assessment(std::int64_t)>& assess) {
  Assessment sum;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto one = assess(i);
    for (const auto member :
         {&Assessment::kl, &Assessment::text_nll, &Assessment::text_loss, &Assessment::agreement,
          &Assessment::recall, &Assessment::recall_margin})
      sum.*member += one.*member / static_cast<double>(count);
  }
  return sum;
}

Assessor::Assessor(const Conversion& conversion, const Weights& weights, NumericalMode mode,
                   std::function<Samples(std::int64_t)> samples, double room,
                   LearnedBlocks* learned)
    : conversion_(conversion),
      weights_(weights),
      mode_(mode),
      samples_(std::move(samples)),
      room_(room),
      learned_(learned) {}

template <class Call>
auto Assessor::with_model(std::int64_t seed, const Call& call) {
  std::unique_lock lock(lending_);
  auto own = models_.extract(seed);
  lock.unlock();
  auto model = own ? std::move(own.mapped())
                   : std::make_unique<HybridModel>(
                         conversion_, weights_, mode_,
                         seed == kUntrained ? TrainedBlocks() : learned_->of_seed(seed));
  const auto found = call(*model);
  lock.lock();
  models_.emplace(seed, std::move(model));
  return found;
}

Assessor::Known Assessor::look_at(const Sample& sample, bool document, HybridModel& model) const {
  Known known{.sample = sample};
  auto stream = model.embedded(sample.tokens);
  std::vector<nn::SharedKeys> shared;
  nn::Pass pass;
  pass.shared = &shared;
  for (std::int64_t i = 0; i < conversion_.layers(); ++i) {
    known.streams.push_back(stream);
    stream = model.behind(i, 0, stream, pass);
  }
  const auto features = model.features(stream);
  known.asked = sample.targets.ge(0).nonzero().flatten();
  known.targets = sample.targets.index_select(0, known.asked);
  if (!document) {
    const auto asked = features.index_select(0, known.asked);
    known.nll = model.nll(asked, known.targets).mean().item<double>();
    // Those next to an answer are near what is read, which a model may repeat.
    const auto half = known.targets.size(0) / 2;
    const auto others = half > 0 ? known.targets.roll(half) : sample.tokens.narrow(0, 0, 1);
    known.margin = model.nll(asked, others).mean().item<double>() - known.nll;
    return known;
  }
  std::vector<torch::Tensor> logs, likeliest;
  for (std::int64_t t = 0; t < features.size(0); t += kRows) {
    const auto rows = std::min(kRows, features.size(0) - t);
    logs.push_back(model.logits(features.narrow(0, t, rows)).log_softmax(-1));
    likeliest.push_back(logs.back().argmax(-1));
  }
  known.log_probabilities = at::cat(logs);
  known.likeliest = at::cat(likeliest);
  known.nll = -known.log_probabilities.index_select(0, known.asked)
                   .gather(1, known.targets.unsqueeze(1))
                   .mean(at::kDouble)
                   .item<double>();
  return known;
}

double Assessor::bytes_of(const Replicate& samples) {
  double bytes = 0.0;
  for (const auto& sample : samples) {
    bytes += sample.log_probabilities.defined()
                 ? static_cast<double>(sample.log_probabilities.nbytes())
                 : 0.0;
    for (const auto& stream : sample.streams) bytes += static_cast<double>(stream.nbytes());
  }
  return bytes;
}

double Assessor::kept_bytes() {
  const std::lock_guard lock(making_);
  double bytes = 0.0;
  for (const auto& one : kept_) bytes += bytes_of(*one.second);
  return bytes;
}

std::shared_ptr<const Assessor::Replicate> Assessor::known(std::int64_t replicate,
                                                           HybridModel& model) {
  const std::lock_guard lock(making_);
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const auto& one) { return one.first == replicate; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front().second;
  }
  const at::NoGradGuard no_grad;
  auto made = std::make_shared<Replicate>();
  for (const auto& sample : samples_(replicate))
    made->push_back(look_at(sample, made->empty(), model));
  kept_.emplace_front(replicate, std::move(made));
  double bytes = 0.0;
  for (auto one = kept_.begin(); one != kept_.end();) {
    bytes += bytes_of(*one->second);
    one = one != kept_.begin() && bytes > room_ ? kept_.erase(one) : std::next(one);
  }
  return kept_.front().second;
}

Assessment Assessor::compared(const Replicate& samples, const torch::Tensor& output,
                              const std::function<torch::Tensor(const Known&)>& features) const {
  Assessment found{.text_nll = samples.front().nll, .agreement = 1.0};
  const auto probes = static_cast<double>(samples.size()) - 1.0;
  for (const auto& sample : samples) {
    found.recall_margin += sample.margin / std::max(1.0, probes);
    const auto said = features(sample);
    if (!sample.log_probabilities.defined()) {
      const auto asked = said.index_select(0, sample.asked).unsqueeze(0);
      const auto nll = nn::score_tokens(asked, output, sample.targets.unsqueeze(0), mode_).nll;
      found.recall += nll.mean().item<double>() - sample.nll;
      continue;
    }
    const auto beside = nn::divergences(said, output, sample.log_probabilities, sample.likeliest,
                                        sample.sample.targets, mode_);
    found.kl = std::max(0.0, beside.nats.mean().item<double>());
    found.agreement = beside.likeliest.eq(sample.likeliest).to(at::kDouble).mean().item<double>();
    const auto nll = beside.nll.sum().item<double>();
    found.text_loss = nll / static_cast<double>(sample.asked.size(0)) - sample.nll;
    found.text_nll = sample.nll + found.text_loss;
  }
  if (probes > 0.0) found.recall /= probes;
  return found;
}

Assessment Assessor::assess(const Placement& placement, std::int64_t replicate,
                            HybridModel& model) {
  const at::NoGradGuard no_grad;
  const auto samples = known(replicate, model);
  const auto differs =
      std::find_if(placement.begin(), placement.end(), [](auto b) { return b != 0; });
  if (differs == placement.end()) {
    Assessment own{.text_nll = samples->front().nll, .agreement = 1.0};
    for (const auto& sample : *samples)
      own.recall_margin +=
          sample.margin / std::max(1.0, static_cast<double>(samples->size()) - 1.0);
    return own;
  }
  // What shares keys begins with the layer that has them.
  std::int64_t first = differs - placement.begin();
  for (auto i = first; i < conversion_.layers(); ++i) {
    const auto from = conversion_.giver(placement, i);
    if (from >= 0) first = std::min(first, from);
  }
  return compared(*samples, model.output(), [&](const Known& sample) {
    auto stream = sample.streams[static_cast<std::size_t>(first)];
    std::vector<nn::SharedKeys> shared;
    nn::Pass pass;
    pass.shared = &shared;
    for (auto i = first; i < conversion_.layers(); ++i)
      stream = model.behind(placement, i, stream, pass);
    return model.features(stream);
  });
}

Assessment Assessor::assess(const Placement& placement, std::int64_t replicate,
                            std::int64_t learns) {
  return with_model(
      learned_ == nullptr ? kUntrained : learned_->seed(learns < 0 ? replicate : learns),
      [&](HybridModel& model) { return assess(placement, replicate, model); });
}

Assessment Assessor::assess(nn::TransformerArray& hybrid, std::int64_t replicate) {
  const at::NoGradGuard no_grad;
  const auto samples =
      with_model(kUntrained, [&](HybridModel& model) { return known(replicate, model); });
  const auto hidden = [&](const Known& sample) {
    return hybrid.hidden(sample.sample.tokens.view({1, 1, -1}), nn::Pass{});
  };
  return compared(*samples, hidden(samples->front()).output,
                  [&](const Known& sample) { return hidden(sample).features.flatten(0, 2); });
}

Assessment Assessor::assess_untrained(const Placement& placement, std::int64_t replicate) {
  return with_model(kUntrained,
                    [&](HybridModel& model) { return assess(placement, replicate, model); });
}

double Assessor::decode_milliseconds(const Placement& placement, std::int64_t tokens) {
  const std::lock_guard lock(timing_);
  const auto measured = [&](const std::string& form, const auto& measure) {
    const auto known = times_.find(form);
    return known != times_.end() ? known->second : times_.emplace(form, measure()).first->second;
  };
  return with_model(kUntrained, [&](HybridModel& model) {
    double sum = measured("output", [&] { return model.output_milliseconds(); });
    for (std::size_t i = 0; i < placement.size(); ++i) {
      const auto layer = static_cast<std::int64_t>(i);
      auto form = conversion_.form(placement, layer);
      const auto from = conversion_.giver(placement, layer);
      if (from >= 0) form += " of " + conversion_.form(placement, from);
      sum += measured(form, [&] { return model.step_milliseconds(placement, layer, tokens); });
    }
    return sum;
  });
}

Assessment Assessor::added_up(const Placement& placement, std::int64_t replicate,
                              std::int64_t learns) {
  auto sum = assess(Placement(placement.size(), 0), replicate, learns);
  for (std::size_t i = 0; i < placement.size(); ++i) {
    if (placement[i] == 0) continue;
    Placement alone(placement.size(), 0);
    alone[i] = placement[i];
    const std::tuple key(replicate, learns, alone);
    std::unique_lock lock(adding_);
    auto found = alone_.find(key);
    if (found == alone_.end()) {
      lock.unlock();
      const auto assessed = assess(alone, replicate, learns);
      lock.lock();
      found = alone_.insert_or_assign(key, assessed).first;
    }
    sum.kl += found->second.kl;
    sum.text_loss += found->second.text_loss;
    sum.text_nll += found->second.text_loss;
    sum.agreement += found->second.agreement - 1.0;
    sum.recall += found->second.recall;
  }
  return sum;
}

}  // namespace nas
