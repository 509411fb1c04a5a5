#include "store/evaluation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <type_traits>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

namespace {

constexpr std::array<std::string_view, kStatuses.size()> kStatusNames{
    "ok",       "paused", "stopped_early", "diverged", "out_of_memory",
    "rejected", "failed", "timed_out",     "crashed"};

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double perplexity_of(double nll, std::int64_t tokens) {
  return std::exp(nll / static_cast<double>(tokens));
}

/// Calls visit(name, sum) for all sums of scores but nll; real ones are doubles.
template <class AnyScores, class Visit>
void visit_sums(AnyScores& scores, Visit visit) {
  visit("tokens", scores.tokens);
  visit("correct", scores.correct);
  visit("pad_nll", scores.pad_nll);
  visit("pad_tokens", scores.pad_tokens);
  visit("unknown_nll", scores.unknown_nll);
  visit("unknown_tokens", scores.unknown_tokens);
  visit("batch_mean_nll", scores.batch_mean_nll);
  visit("batches", scores.batches);
}

}  // namespace

std::string_view to_string(Status status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

Status parse_status(std::string_view text) {
  const auto found = std::find(kStatusNames.begin(), kStatusNames.end(), text);
  if (found == kStatusNames.end()) {
    // Said of what was to go on, "paused" is refused.
    std::vector<std::string> known(kStatusNames.begin(), kStatusNames.end());
    std::erase(known, to_string(Status::paused));
    throw InputError("unknown status '" + std::string(text) + "', known: " + join(known) +
                     ", and paused where its task pauses");
  }
  return static_cast<Status>(found - kStatusNames.begin());
}

bool is_usable(Status status) { return status <= Status::stopped_early; }

bool may_be_retried(Status status) {
  return status == Status::failed || status == Status::out_of_memory ||
         status == Status::timed_out || status == Status::crashed;
}

bool is_usable(const Evaluation& evaluation) { return is_usable(evaluation.status); }

bool is_screened_out(const Evaluation& evaluation) {
  return evaluation.status == Status::rejected && evaluation.curve.empty();
}

void require_finite_values(Evaluation& evaluation) {
  if (!is_usable(evaluation)) return;
  for (const auto& [name, value] : evaluation.values) {
    if (std::isfinite(value) || name.starts_with("test_")) continue;
    evaluation.status = Status::diverged;
    evaluation.reason = name + " = " + shortest(value) + ", must be finite";
    return;
  }
}

std::map<std::string, double> quality_values(const Scores& scores, double bytes_per_token) {
  std::map<std::string, double> values{{"perplexity", scores.perplexity()},
                                       {"published_perplexity", scores.published_perplexity()},
                                       {"accuracy", scores.accuracy()}};
  if (bytes_per_token > 0.0 && scores.unknown_tokens == 0) {
    values["bits_per_byte"] =
        scores.nll / static_cast<double>(scores.tokens) / std::numbers::ln2 / bytes_per_token;
  }
  return values;
}

void set_quality_values(Evaluation& evaluation, double bytes_per_token) {
  evaluation.values.erase("bits_per_byte");
  for (auto& [name, value] : quality_values(evaluation.curve.back().valid, bytes_per_token)) {
    evaluation.values[name] = value;
  }
}

double quality(const Evaluation& evaluation, const std::string& name) {
  const auto recorded = evaluation.values.find(name);
  if (recorded != evaluation.values.end()) return recorded->second;
  if (!evaluation.curve.empty()) {
    const auto values = quality_values(evaluation.curve.back().valid, 0.0);
    if (const auto found = values.find(name); found != values.end()) return found->second;
  }
  throw std::logic_error("no " + name + " was recorded of this training of " +
                         evaluation.candidate + ", and its curve does not determine it");
}

bool answers(const Evaluation& evaluation, std::int64_t until) {
  if (evaluation.status != Status::paused) return true;
  return until > 0 && evaluation.curve.back().step >= until;
}

double spent_seconds(const Evaluation& evaluation) {
  double seconds = 0.0;
  for (const auto* part : {"train_seconds", kFailedSeconds}) {
    const auto found = evaluation.measured.find(part);
    if (found != evaluation.measured.end() && found->is_number()) seconds += found->get<double>();
  }
  return seconds;
}

void pause_at(Evaluation& evaluation, std::int64_t step, double bytes_per_token) {
  auto& curve = evaluation.curve;
  const auto point = std::find_if(curve.begin(), curve.end(),
                                  [step](const CurvePoint& p) { return p.step == step; });
  if (point == curve.end() || !std::isfinite(point->train_nll) ||
      !std::isfinite(point->valid.nll)) {
    return;
  }
  const bool is_last = point + 1 == curve.end();
  const bool ended_there =
      evaluation.status == Status::ok || evaluation.status == Status::stopped_early;
  if (is_last && ended_there) return;  // what diverged after its last point did so later
  auto& measured = evaluation.measured;
  if (const auto cpu = measured.find("cpu_seconds"); cpu != measured.end() && !is_last) {
    *cpu = cpu->get<double>() * point->seconds / measured.at("train_seconds").get<double>();
  }
  measured["train_seconds"] = point->seconds;
  curve.erase(point + 1, curve.end());
  evaluation.status = Status::paused;
  evaluation.reason.clear();
  std::erase_if(evaluation.values,
                [](const auto& item) { return item.first.starts_with("test_"); });
  set_quality_values(evaluation, bytes_per_token);
}

void fail_before(Evaluation& evaluation, std::int64_t step) {
  if (step == 0 || is_usable(evaluation)) return;
  std::erase_if(evaluation.curve, [step](const CurvePoint& point) {
    return point.step >= step && std::isfinite(point.train_nll) && std::isfinite(point.valid.nll);
  });
}

void set_test_values(Evaluation& evaluation, const Scores& test) {
  visit_sums(test, [&evaluation](const std::string& name, auto sum) {
    evaluation.values["test_" + name] = static_cast<double>(sum);
  });
  evaluation.values["test_nll"] = test.nll / static_cast<double>(test.tokens);
  evaluation.values["test_perplexity"] = test.perplexity();
}

Scores test_scores(const Evaluation& evaluation) {
  const auto recorded = [&evaluation](const std::string& name) {
    const auto found = evaluation.values.find("test_" + name);
    return found != evaluation.values.end() ? found->second : kUnknown;
  };
  Scores test;
  visit_sums(test, [&recorded](const std::string& name, auto& sum) {
    const double value = recorded(name);
    if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(sum)>>) {
      sum = value;
    } else {
      sum = std::isnan(value) ? kNotCounted : std::llround(value);
    }
  });
  test.nll = recorded("nll") * static_cast<double>(test.tokens);
  return test;
}

double Scores::perplexity() const { return perplexity_of(nll, tokens); }
double Scores::published_perplexity() const { return perplexity_of(batch_mean_nll, batches); }
double Scores::accuracy() const {
  if (correct == kNotCounted) return kUnknown;
  return static_cast<double>(correct) / static_cast<double>(tokens);
}

nlohmann::json number_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double read_number(const nlohmann::json& json) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (json.is_null()) return infinity;
  if (!json.is_string()) return json.get<double>();
  const auto& text = json.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return infinity;
  if (text == "-inf") return -infinity;
  throw InputError("'" + text + "' is no number");
}

nlohmann::json values_json(const Evaluation& evaluation) {
  auto json = nlohmann::json::object();
  for (const auto& [name, value] : evaluation.values) json[name] = number_json(value);
  return json;
}

namespace {

nlohmann::json json_of(std::int64_t sum) { return sum; }
nlohmann::json json_of(double sum) { return number_json(sum); }
void read(const nlohmann::json& json, std::int64_t& sum) { json.get_to(sum); }
void read(const nlohmann::json& json, double& sum) { sum = read_number(json); }

}  // namespace

void to_json(nlohmann::json& json, const Scores& scores) {
  json = {{"nll", number_json(scores.nll)}};
  visit_sums(scores, [&json](const char* name, auto sum) { json[name] = json_of(sum); });
}

void from_json(const nlohmann::json& json, Scores& scores) {
  scores.nll = read_number(json.at("nll"));
  visit_sums(scores, [&json](const char* name, auto& sum) { read(json.at(name), sum); });
}

void to_json(nlohmann::json& json, const CurvePoint& point) {
  json = {{"step", point.step},
          {"train_nll", number_json(point.train_nll)},
          {"valid", point.valid},
          {"seconds", point.seconds}};
}

void from_json(const nlohmann::json& json, CurvePoint& point) {
  point.step = json.at("step");
  point.train_nll = read_number(json.at("train_nll"));
  point.valid = json.at("valid");
  point.seconds = json.at("seconds");
}

void to_json(nlohmann::json& json, const Evaluation& evaluation) {
  json = {{"id", evaluation.id},
          {"candidate", evaluation.candidate},
          {"replicate", evaluation.replicate},
          {"identity", evaluation.identity},
          {"status", to_string(evaluation.status)},
          {"reason", evaluation.reason},
          {"curve", evaluation.curve},
          {"values", values_json(evaluation)},
          {"measured", evaluation.measured}};
}

void from_json(const nlohmann::json& json, Evaluation& evaluation) {
  evaluation.id = json.at("id");
  evaluation.candidate = json.at("candidate");
  evaluation.replicate = json.at("replicate");
  evaluation.identity = json.at("identity");
  evaluation.status = parse_status(json.at("status").get<std::string>());
  evaluation.reason = json.at("reason");
  evaluation.curve = json.at("curve").get<std::vector<CurvePoint>>();
  evaluation.values.clear();
  for (const auto& [name, value] : json.at("values").items()) {
    evaluation.values[name] = read_number(value);
  }
  evaluation.measured = json.at("measured");
}

void shorten_identity(Evaluation& evaluation) {
  if (!evaluation.identity.is_object()) return;
  const auto found = evaluation.identity.find("candidate");
  if (found != evaluation.identity.end() && *found == evaluation.candidate) *found = nullptr;
}

nlohmann::json whole_identity(const Evaluation& evaluation) {
  auto identity = evaluation.identity;
  if (!identity.is_object()) return identity;
  const auto found = identity.find("candidate");
  if (found != identity.end() && found->is_null()) *found = evaluation.candidate;
  return identity;
}

std::string seed_text(std::int64_t replicate) {
  return "seed " + std::to_string(replicate % kFirstHeldOutReplicate + 1);
}

nlohmann::json canonical_json(const Evaluation& evaluation) {
  nlohmann::json json = evaluation;
  json["identity"] = whole_identity(evaluation);
  json.erase("measured");
  for (auto& point : json.at("curve")) point.erase("seconds");
  return json;
}

}  // namespace nas
