#include "store/evaluation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.hpp"

namespace nas {

namespace {

constexpr std::array<std::string_view, 6> kStatusNames{
    "ok", "stopped_early", "diverged", "out_of_memory", "rejected", "failed"};

double perplexity_of(double nll, std::int64_t tokens) {
  return std::exp(nll / static_cast<double>(tokens));
}

/// JSON has no infinities and no NaN, but the curve of a diverged training has: they are written as
/// texts.
nlohmann::json number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double read_number(const nlohmann::json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto& text = json.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return text == "inf" ? infinity : -infinity;
}

}  // namespace

std::string_view to_string(Status status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

Status parse_status(std::string_view text) {
  const auto found = std::find(kStatusNames.begin(), kStatusNames.end(), text);
  if (found == kStatusNames.end()) {
    throw InputError("unknown status '" + std::string(text) +
                     "', known: " + join({kStatusNames.begin(), kStatusNames.end()}));
  }
  return static_cast<Status>(found - kStatusNames.begin());
}

bool is_usable(const Evaluation& evaluation) {
  return evaluation.status == Status::ok || evaluation.status == Status::stopped_early;
}

void set_quality_values(Evaluation& evaluation, double bytes_per_token) {
  const auto& valid = evaluation.curve.back().valid;
  evaluation.values["perplexity"] = valid.perplexity();
  evaluation.values["published_perplexity"] = valid.published_perplexity();
  evaluation.values["accuracy"] = valid.accuracy();
  if (bytes_per_token > 0.0) {
    evaluation.values["bits_per_byte"] =
        valid.nll / static_cast<double>(valid.tokens) / std::numbers::ln2 / bytes_per_token;
  }
}

double Scores::perplexity() const { return perplexity_of(nll, tokens); }
double Scores::published_perplexity() const { return perplexity_of(batch_mean_nll, batches); }
double Scores::perplexity_without_pad() const {
  return perplexity_of(nll - pad_nll, tokens - pad_tokens);
}
double Scores::perplexity_without_unknown() const {
  return perplexity_of(nll - pad_nll - unknown_nll, tokens - pad_tokens - unknown_tokens);
}
double Scores::accuracy() const {
  return static_cast<double>(correct) / static_cast<double>(tokens);
}

void to_json(nlohmann::json& json, const Scores& scores) {
  json = {{"nll", number(scores.nll)},
          {"tokens", scores.tokens},
          {"correct", scores.correct},
          {"pad_nll", number(scores.pad_nll)},
          {"pad_tokens", scores.pad_tokens},
          {"unknown_nll", number(scores.unknown_nll)},
          {"unknown_tokens", scores.unknown_tokens},
          {"batch_mean_nll", number(scores.batch_mean_nll)},
          {"batches", scores.batches}};
}

void from_json(const nlohmann::json& json, Scores& scores) {
  scores.nll = read_number(json.at("nll"));
  scores.tokens = json.at("tokens");
  scores.correct = json.at("correct");
  scores.pad_nll = read_number(json.at("pad_nll"));
  scores.pad_tokens = json.at("pad_tokens");
  scores.unknown_nll = read_number(json.at("unknown_nll"));
  scores.unknown_tokens = json.at("unknown_tokens");
  scores.batch_mean_nll = read_number(json.at("batch_mean_nll"));
  scores.batches = json.at("batches");
}

void to_json(nlohmann::json& json, const CurvePoint& point) {
  json = {{"step", point.step},
          {"train_nll", number(point.train_nll)},
          {"valid", point.valid},
          {"seconds", point.seconds}};
}

void from_json(const nlohmann::json& json, CurvePoint& point) {
  point.step = json.at("step");
  point.train_nll = read_number(json.at("train_nll"));
  point.valid = json.at("valid");
  point.seconds = json.at("seconds");
}

nlohmann::json canonical_json(const Evaluation& evaluation) {
  nlohmann::json curve = evaluation.curve;
  for (auto& point : curve) point.erase("seconds");
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, value] : evaluation.values) values[name] = number(value);
  return {{"id", evaluation.id},
          {"candidate", evaluation.candidate},
          {"replicate", evaluation.replicate},
          {"identity", evaluation.identity},
          {"status", to_string(evaluation.status)},
          {"reason", evaluation.reason},
          {"curve", std::move(curve)},
          {"values", std::move(values)}};
}

}  // namespace nas
