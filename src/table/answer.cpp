#include "table/answer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "store/replicates.hpp"
#include "table/format.hpp"

namespace nas {

namespace {

/// The mean of what several maps hold under each name.
class Means {
 public:
  void add(const std::string& name, double value) {
    auto& [sum, n] = sums_[name];
    sum += value;
    n += 1.0;
  }
  template <class Set>
  void for_each(Set set) const {
    for (const auto& [name, sum] : sums_) set(name, sum.first / sum.second);
  }

 private:
  std::map<std::string, std::pair<double, double>> sums_{};  ///< and how many
};

void add(Scores& sum, const Scores& more) {
  sum.nll += more.nll;
  sum.tokens += more.tokens;
  sum.correct += more.correct;
  sum.pad_nll += more.pad_nll;
  sum.pad_tokens += more.pad_tokens;
  sum.unknown_nll += more.unknown_nll;
  sum.unknown_tokens += more.unknown_tokens;
  sum.batch_mean_nll += more.batch_mean_nll;
  sum.batches += more.batches;
}

/// Pools the curves of evaluations, as far as the shortest goes.
std::vector<CurvePoint> pooled_curve(const std::vector<const Evaluation*>& evaluations) {
  auto curve = evaluations.front()->curve;
  for (const auto* evaluation : evaluations) {
    curve.resize(std::min(curve.size(), evaluation->curve.size()));
  }
  const auto n = static_cast<double>(evaluations.size());
  for (std::size_t i = 0; i < curve.size(); ++i) {
    curve[i] = {.step = curve[i].step, .train_nll = 0.0, .valid = {}, .seconds = 0.0};
    for (const auto* evaluation : evaluations) {
      const auto& point = evaluation->curve[i];
      curve[i].train_nll += point.train_nll / n;
      curve[i].seconds += point.seconds / n;
      add(curve[i].valid, point.valid);
    }
  }
  return curve;
}

}  // namespace

std::vector<Evaluation> recorded_replicates(const Table& table, std::int64_t mechanism) {
  std::vector<Evaluation> evaluations;
  for (std::int64_t replicate = 0; replicate < table.most_replicates(); ++replicate) {
    if (table.has(mechanism, replicate)) {
      evaluations.push_back(table.evaluation(mechanism, replicate));
    }
  }
  return evaluations;
}

Evaluation ended_at(Evaluation evaluation, std::int64_t step, double bytes_per_token) {
  auto& curve = evaluation.curve;
  const auto point = std::find_if(curve.begin(), curve.end(),
                                  [step](const CurvePoint& p) { return p.step == step; });
  if (point == curve.end() || !std::isfinite(point->valid.nll) ||
      !std::isfinite(point->train_nll) ||
      (evaluation.status == Status::ok && point + 1 == curve.end())) {
    return evaluation;
  }
  const auto taken = evaluation.measured.at("train_seconds").get<double>();
  const double share = taken > 0.0 ? point->seconds / taken : 0.0;
  for (const auto* name : {"train_seconds", "cpu_seconds"}) {
    const auto seconds = evaluation.measured.find(name);
    if (seconds != evaluation.measured.end()) *seconds = share * seconds->get<double>();
  }
  curve.erase(point + 1, curve.end());
  evaluation.status = Status::ok;
  evaluation.reason.clear();
  std::erase_if(evaluation.values,
                [](const auto& item) { return item.first.starts_with("test_"); });
  set_quality_values(evaluation, bytes_per_token);
  return evaluation;
}

Evaluation mean_evaluation(const std::vector<Evaluation>& evaluations, double bytes_per_token) {
  const auto all = pointers(evaluations);
  if (const auto& worst = worst_of(all); !is_usable(worst)) {
    auto failed = worst;
    failed.reason = failures_text(all);
    return failed;
  }
  auto mean = *all.front();
  if (any_stopped(all)) {
    mean.status = Status::stopped_early;
    mean.reason = stops_text(all);
  }
  mean.curve = pooled_curve(all);
  Means values;
  Means measured;
  for (const auto* evaluation : all) {
    auto one = *evaluation;
    if (!one.curve.empty())
      set_quality_values(one, bytes_per_token);  // whatever was recorded of them at the time
    for (const auto& [name, value] : one.values) values.add(name, value);
    table_format::visit_measured([&](const char* name) {
      const auto found = evaluation->measured.find(name);
      if (found != evaluation->measured.end()) measured.add(name, found->get<double>());
    });
  }
  values.for_each([&mean](const auto& name, double value) { mean.values[name] = value; });
  measured.for_each([&mean](const auto& name, double value) { mean.measured[name] = value; });
  return mean;
}

Evaluation scored_on_test(Evaluation evaluation, double bytes_per_token) {
  if (evaluation.curve.empty()) return evaluation;
  evaluation.curve.back().valid = test_scores(evaluation);
  set_quality_values(evaluation, bytes_per_token);
  // Absent, it would be looked for.
  evaluation.values.try_emplace("bits_per_byte", std::numeric_limits<double>::quiet_NaN());
  return evaluation;
}

}  // namespace nas
