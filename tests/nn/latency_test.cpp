#include "instruments/latency.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/slots.hpp"
#include "search/objective.hpp"
#include "unit/message_of.hpp"

namespace nas::nn {
namespace {

Architecture small_model(Semantics semantics = Semantics::corrected) {
  return {.stack = {vanilla_mechanism(semantics)},
          .semantics = semantics,
          .layers = 1,
          .width = 16,
          .heads = 2,
          .context = 8,
          .vocabulary = 20};
}

LatencySettings settings_for(Part part, std::int64_t context = 0) {
  LatencySettings settings;
  settings.pass.part = part;
  settings.pass.context = context;
  settings.repeats = LatencySettings::kMinRepeats;
  settings.warm_up = 2;
  return settings;
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values;
  for (int i = 10; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(percentile(values, 50), 5);
  EXPECT_EQ(percentile(values, 90), 9);
  EXPECT_EQ(percentile(values, 91), 10);
  EXPECT_EQ(percentile(values, 100), 10);
  EXPECT_EQ(percentile(values, 1), 1);
  EXPECT_EQ(percentile({3, 1, 2}, 50), 2);
  EXPECT_EQ(percentile({7}, 90), 7);
  EXPECT_THROW((void)percentile({}, 50), std::logic_error);
  EXPECT_THROW((void)percentile({1}, 0), std::logic_error);
  EXPECT_THROW((void)percentile({1}, 101), std::logic_error);
}

TEST(Latency, IsMeasuredOfEitherPart) {
  const auto architecture = small_model();
  for (const auto part : {Part::model, Part::attention}) {
    const auto report = measure_latency(architecture, architecture, settings_for(part));
    EXPECT_GT(report.p50, 0.0);
    EXPECT_LE(report.p50, report.p90);
    EXPECT_GT(report.canary_p50, 0.0);
    EXPECT_LE(report.canary_p50, report.canary_p90);
    EXPECT_TRUE(std::isfinite(report.p90) && std::isfinite(report.canary_p90));
    EXPECT_EQ(report.relative(), report.p50 / report.canary_p50);
    EXPECT_EQ(report.repeats, 50);
    EXPECT_EQ(report.context, 8);
    EXPECT_EQ(report.clock, "steady clock");
  }
}

TEST(Latency, IsMeasuredOfAStepAtItsPlace) {
  auto subject = small_model();
  subject.stack.front().set("pattern", "window");
  subject.stack.front().set("window", 3);
  for (const std::int64_t tokens : {0, 1, 12}) {
    const auto report = measure_latency(subject, small_model(), settings_for(Part::step, tokens));
    EXPECT_GT(report.p50, 0.0);
    EXPECT_LE(report.p50, report.p90);
    EXPECT_GT(report.canary_p50, 0.0);
    EXPECT_EQ(report.context, tokens == 0 ? 8 : tokens);
  }
}

// A second run without prepare() would be one of a ninth token, which has no learned position.
TEST(ForwardPass, PreparesTheSameStepAgain) {
  ForwardPass step(small_model(), {.part = Part::step});
  EXPECT_NO_THROW(step());
  step.prepare();
  EXPECT_NO_THROW(step());
  EXPECT_THROW(step(), CandidateFailure);
  ForwardPass pass(small_model(), {.part = Part::model});
  EXPECT_NO_THROW(pass());
  EXPECT_NO_THROW(pass());
}

// Recurrent layers have maps, too, but no weights of scores.
TEST(ForwardPass, OfAttentionIsNotOfARecurrentLayer) {
  const auto architecture = canonical(parse_model("gla", small_model()));
  EXPECT_EQ(message_of<CandidateFailure>(
                [&] { const ForwardPass pass(architecture, {.part = Part::attention}); }),
            "part = attention: no layer of the model is one of attention");
}

// As the control without a mixer, which has no attention to wait for.
TEST(ForwardPass, OfAttentionIsNothingWhereNothingIsMixed) {
  const auto architecture = canonical(parse_model("none", small_model()));
  ForwardPass pass(architecture, {.part = Part::attention});
  EXPECT_NO_THROW(pass());
}

TEST(ForwardPass, RefusesStepsOfWhatSeesLaterTokens) {
  auto architecture = small_model(Semantics::published);
  architecture.stack.front().set("temperature", "sequence_mean");
  EXPECT_EQ(message_of<CandidateFailure>(
                [&] { const ForwardPass step(architecture, {.part = Part::step}); }),
            "temperature = sequence_mean: cannot go on one token at a time, since it sees "
            "later tokens");
}

TEST(Latency, IsTimedByEventsOnAGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  auto settings = settings_for(Part::model);
  settings.pass.device = "cuda:0";
  for (const auto part : {Part::model, Part::step}) {
    settings.pass.part = part;
    const auto report = measure_latency(small_model(), small_model(), settings);
    EXPECT_EQ(report.clock, "CUDA events");
    EXPECT_GT(report.p50, 0.0);
  }
}

/// Takes a millisecond for each number that LibTorch's operations read, whatever else this machine
/// is at.
class Work final : public Stopwatch {
 public:
  double time(ForwardPass& pass) override {
    pass.prepare();
    numbers = 0;
    const auto reading = at::addThreadLocalCallback(
        at::RecordFunctionCallback(read).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    pass();
    at::removeCallback(reading);
    return static_cast<double>(numbers);
  }
  [[nodiscard]] std::string clock() const override { return "work"; }

 private:
  static std::unique_ptr<at::ObserverContext> read(const at::RecordFunction& operation) {
    for (const auto& input : operation.inputs()) {
      if (input.isTensor() && input.toTensor().defined()) numbers += input.toTensor().numel();
    }
    return nullptr;
  }
  inline static std::int64_t numbers = 0;
};

/// Of operations alone, without kernels of our own.
LatencyReport measure_work(const Architecture& subject, const Architecture& canary,
                           LatencySettings settings) {
  settings.pass.numerical_mode = NumericalMode::reference;
  return measure_latency(subject, canary, settings, std::make_unique<Work>());
}

// 64 times the scores and 8 times the rest.
TEST(Latency, GrowsWithTheTokens) {
  Architecture architecture;
  architecture.stack = {vanilla_mechanism(Semantics::corrected)};
  const auto at_length = [&](std::int64_t context) {
    return measure_work(architecture, architecture, settings_for(Part::attention, context));
  };
  const auto brief = at_length(32);
  const auto lengthy = at_length(256);  // longer than the architecture's 128
  EXPECT_EQ(lengthy.context, 256);
  EXPECT_EQ(lengthy.clock, "work");
  EXPECT_GT(lengthy.p50, 2 * brief.p50);
  EXPECT_GT(lengthy.canary_p50, 2 * brief.canary_p50);
}

// 512 KB of keys and values are read for one token, against 2 KB.
TEST(Latency, OfAStepGrowsWithTheKeysThatAreKept) {
  auto architecture = small_model();
  architecture.width = 64;
  auto windowed = architecture;
  windowed.stack.front().set("pattern", "window");
  windowed.stack.front().set("window", 4);
  const auto full = measure_work(architecture, windowed, settings_for(Part::step, 1024));
  EXPECT_GT(full.relative(), 1.5);
}

TEST(Latency, TellsTheSubjectFromTheCanary) {
  auto subject = small_model();
  subject.context = 128;
  subject.stack.front().set("similarity",
                            "additive");  // a tanh for each channel of a pair of tokens
  auto canary = subject;
  canary.stack = {vanilla_mechanism(canary.semantics)};
  const auto settings = settings_for(Part::attention, 256);  // where pairs are most of the work
  const auto report = measure_work(subject, canary, settings);
  EXPECT_GT(report.relative(), 1.5);
  EXPECT_EQ(measure_work(canary, subject, settings).p50, report.canary_p50);
}

TEST(Latency, TheCanaryOfModelsThatMatchInParametersIsTheVanillaOne) {
  Architecture frame;
  frame.match_parameters = true;
  const auto narrow = parse_model("2*attn{gating=highway}", frame);
  const auto wide = parse_model("2*attn{kv_heads=1}", frame);
  EXPECT_NE(narrow.hidden, wide.hidden);
  EXPECT_EQ(vanilla_canary(narrow), vanilla_canary(wide));
  EXPECT_EQ(vanilla_canary(narrow).hidden, vanilla_architecture(frame).hidden);
}

TEST(Latency, LeavesTheNumberOfThreadsAsItWas) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  auto settings = settings_for(Part::attention);
  settings.threads = 1;
  (void)measure_latency(small_model(), small_model(), settings);
  EXPECT_EQ(at::get_num_threads(), 2);
  {
    const ThreadScope threads(1);
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 2);
  settings.pass.batch = 0;
  EXPECT_THROW((void)measure_latency(small_model(), small_model(), settings), InputError);
  EXPECT_EQ(at::get_num_threads(), 2);
  at::set_num_threads(before);
}

/// Of an objective of times, what every record of it says.
void expect_times(const Objective& objective, const nlohmann::json& measured, bool median) {
  EXPECT_EQ(objective.unit, "ms");
  EXPECT_FALSE(objective.maximise);
  EXPECT_FALSE(objective.analytic || objective.trained);
  for (const auto* time : {"value", "p50", "p90", "canary_p50", "canary_p90", "relative"}) {
    EXPECT_GT(measured.at(time).get<double>(), 0.0) << time;
    EXPECT_TRUE(std::isfinite(measured.at(time).get<double>())) << time;
  }
  EXPECT_EQ(measured.at("value"), measured.at(median ? "p50" : "p90"));
  EXPECT_EQ(measured.at("repeats"), 50);
  EXPECT_EQ(measured.at("threads"), 1);
  EXPECT_EQ(measured.at("device"), "cpu");
  EXPECT_EQ(measured.at("clock"), "steady clock");
}

TEST(LatencyObjective, RecordsWhatWasMeasured) {
  const auto& entry = objectives().at("latency");
  Parameters settings(entry.description.settings);
  settings.set("repeats", std::int64_t{50});
  settings.set("batch", std::int64_t{2});
  Subject subject{.architecture = small_model(Semantics::published)};
  subject.architecture.stack.front().set("normalization", "sparsemax");
  for (const bool median : {true, false}) {
    settings.set("percentile", std::string(median ? "p50" : "p90"));
    const auto objective = entry.make(settings);
    const auto measured = objective.measured(subject);
    expect_times(objective, measured, median);
    EXPECT_EQ(measured.at("batch"), 2);
    EXPECT_EQ(measured.at("context"), 8);
    EXPECT_EQ(measured.at("part"), "attention");
  }
}

TEST(DecodeLatencyObjective, RecordsWhatWasMeasured) {
  const auto& entry = objectives().at("decode_latency");
  Parameters settings(entry.description.settings);
  settings.set("repeats", std::int64_t{50});
  Subject subject{.architecture = small_model()};
  subject.architecture.stack.front().set("kv_heads", 1);
  for (const std::int64_t tokens : {0, 20}) {
    settings.set("tokens", tokens);
    settings.set("percentile", std::string(tokens == 0 ? "p50" : "p90"));
    const auto objective = entry.make(settings);
    const auto measured = objective.measured(subject);
    expect_times(objective, measured, /*median=*/tokens == 0);
    EXPECT_EQ(measured.at("numerical_mode"), "reference");
    EXPECT_EQ(measured.at("batch"), 1);
    EXPECT_EQ(measured.at("tokens"), tokens == 0 ? 8 : tokens);
    // Keys and values of one layer, one head of 8.
    EXPECT_EQ(measured.at("state_bytes"), 2 * 8 * 4 * (tokens == 0 ? 8 : tokens));
  }
}

}  // namespace
}  // namespace nas::nn
