// What an engine writes, and what its workers answer, is not believed.

#include "evaluation/engine_lines.hpp"

#include "core/error.hpp"
#include "core/warning.hpp"
#include "prelude.hpp"
#include "unit/command_executor_fixture.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

/// Workers that answer what a merge patch makes of an honest answer (fake_engine.py).
class LyingWorkerTest : public CommandExecutorTest {
 protected:
  using Json = nlohmann::json;

  /// @param line, evaluation  patches of an answer and of its first evaluation.
  CommandExecutor::Settings lying(const Json& line, const Json& evaluation,
                                  const std::string& kind = "lie") const {
    const auto file = folder_ / "lie.json";
    std::ofstream(file) << Json{{"line", line}, {"evaluation", evaluation}};
    auto chosen = settings(1, kind);
    chosen.command.push_back(file.string());
    return chosen;
  }
  /// Has a training run made of which something is known beforehand.
  void submit_known(Executor& executor, std::int64_t until) const {
    auto task = make_task(stepping_, {"a|a|a|0.5"}, 0);
    task.until = until;
    auto begun = unmeasured(task);
    begun.values["flops"] = 5.0;
    begun.measured["latency"] = {{"value", 2.5}};
    executor.submit(std::move(task), std::move(begun));
  }
  /// What ends a run whose only worker lies.
  std::string refusal(const Json& line, const Json& evaluation, std::int64_t until = 0) {
    CommandExecutor executor(stepping_, lying(line, evaluation));
    submit_known(executor, until);
    return message_of<MachineError>([&] { rest(executor); });
  }

  SteppingMeasurement stepping_;
};

/// The beginning of what is said of each lie.
constexpr const char* kThrice =
    "the worker node1:7 has answered what cannot be true 3 times in a row, nothing of which is "
    "recorded, the last time: ";

/// A point of a curve, as JSON. @param tokens, train_nll, seconds  as they are written.
std::string point(int step, const std::string& tokens = "3", const std::string& train_nll = "0.5",
                  const std::string& seconds = "1.5") {
  return R"({"step": )" + std::to_string(step) + R"(, "train_nll": )" + train_nll +
         R"(, "seconds": )" + seconds + R"(, "valid": {"nll": 1.5, "tokens": )" + tokens +
         R"(, "correct": 0, "pad_nll": 0.0, "pad_tokens": 0, "unknown_nll": 0.0,)" +
         R"("unknown_tokens": 0, "batch_mean_nll": 0.5, "batches": 1}})";
}
std::string curve(const std::string& points, const std::string& status = "ok") {
  return R"({"status": ")" + status + R"(", "curve": [)" + points + "]}";
}

TEST_F(LyingWorkerTest, AWorkerThatLiesIsRefusedAndNamed) {
  struct Lie {
    std::string evaluation;
    std::string why;
    std::int64_t until = 0;
  };
  const std::string amount = "must be a number of at least 0";
  const std::vector<Lie> lies{
      // Of another task.
      {R"({"id": "0"})", R"(id = "0", must be ")"},
      {R"({"id": null})", "id is missing"},
      {R"({"id": 7})", "id = 7, must be a text"},
      {R"({"candidate": "d|d|d|0"})", R"(candidate = "d|d|d|0", must be "a|a|a|0.5")"},
      {R"({"replicate": 1})", "replicate = 1, must be 0"},
      {R"({"replicate": -1})", "replicate = -1, must be a whole number from 0 to"},
      {R"({"identity": {"fake": 2}})", "identity.fake = 2, must be 1"},
      {R"({"identity": {"more": true}})", "identity.more = true, must be null"},
      {R"({"identity": "mine"})", R"(identity = "mine", must be an object)"},
      // Values of a wrong type, or none.
      {R"({"status": "splendid"})", "unknown status 'splendid', known: ok, stopped_early, "},
      {R"({"status": 0})", "status = 0, must be a text"},
      {R"({"reason": false})", "reason = false, must be a text"},
      {R"({"values": null})", "values is missing"},
      {R"({"values": [1.0]})", "values = [1.0], must be an object"},
      {R"({"values": {"perplexity": null}})", "values.perplexity is missing"},
      {R"({"values": {"perplexity": "good"}})", R"(values.perplexity = "good", must be a number)"},
      {R"({"values": {"perplexity": true}})", "values.perplexity = true, must be a number"},
      {R"({"measured": [1.0]})", "measured = [1.0], must be an object"},
      {R"({"measured": {"train_seconds": null}})", "measured.train_seconds is missing"},
      {R"({"measured": {"train_seconds": "x"}})", R"(measured.train_seconds = "x", )" + amount},
      {R"({"measured": {"train_seconds": -1.0}})", "measured.train_seconds = -1.0, " + amount},
      {R"({"measured": {"failed_seconds": -1.0}})", "measured.failed_seconds = -1.0, " + amount},
      {R"({"measured": {"cpu_seconds": true}})", "measured.cpu_seconds = true, " + amount},
      {R"({"measured": {"array": 0}})", "measured.array = 0, must be a whole number from 1 to"},
      {R"({"measured": {"started": 12}})", "measured.started = 12, must be a text"},
      // Curves that no training run has.
      {R"({"curve": {}})", "curve = {}, must be a list"},
      {curve("7"), "step is missing"},
      {curve(""), "curve = [], must be that of a training run, not empty"},
      {curve("", "stopped_early"),
       "curve = [], must be that of a training run which is stopped_early, not empty"},
      {curve("", "paused"),
       "curve = [], must be that of a training run which is paused, not empty"},
      {curve(point(20) + "," + point(20)), "curve[1].step = 20, must be more than 20"},
      {curve(point(-1)), "curve[0].step = -1, must be a whole number from 0 to"},
      {curve(point(40, "3", R"("nan")")),
       "curve[0] is not finite, must be in a training run which"},
      {curve(point(1, "1e300")), "curve[0].valid.tokens = 1e+300, must be a whole number from -1"},
      {curve(point(1, "18446744073709551615")),
       "curve[0].valid.tokens = 18446744073709551615, must"},
      {curve(point(1, "true")), "curve[0].valid.tokens = true, must be a whole number from -1 to"},
      {curve(point(1, "3", "[]")), "curve[0].train_nll = [], must be a number"},
      {curve(point(1, "3", "0.5", "-1")), "curve[0].seconds = -1, " + amount},
      {curve(point(7) + "," + point(40)), "curve[0].step = 7, must be a validation step"},
      {curve(point(20)), "the last step of its curve = 20, must be 40, at which a training run"},
      // Paused where it was to end, or too soon.
      {R"({"status": "paused"})", R"(status = "paused", must be that of an end)"},
      {curve(point(10), "paused"), "the last step of its curve = 10, must be at least 20", 20},
  };
  EXPECT_EQ(refusal({}, {}), "nothing was thrown") << "that was the truth";
  EXPECT_EQ(refusal({}, {}, 20), "nothing was thrown");
  for (const auto& lie : lies) {
    const auto said = refusal({}, Json::parse(lie.evaluation), lie.until);
    EXPECT_THAT(said, StartsWith(kThrice)) << lie.why;
    EXPECT_THAT(said, HasSubstr(" of a|a|a|0.5, replicate 0: ")) << lie.why;
    EXPECT_THAT(said, HasSubstr(lie.why));
  }
}

TEST_F(LyingWorkerTest, AnAnswerThatIsNoneIsRefusedToo) {
  const auto refused = [this](const char* line) {
    const auto said = refusal(Json::parse(line), {});
    EXPECT_THAT(said, StartsWith(std::string(kThrice) + "order of a|a|a|0.5, replicate 0: "));
    return said;
  };
  EXPECT_THAT(refused(R"({"evaluations": []})"),
              HasSubstr("0 evaluations, must be 1: one of each"));
  EXPECT_THAT(refused(R"({"evaluations": null})"), HasSubstr("evaluations is missing"));
  EXPECT_THAT(refused(R"({"evaluations": 7})"), HasSubstr("evaluations = 7, must be a list"));
  EXPECT_THAT(refused(R"({"device": 7})"), HasSubstr("device = 7, must be a text"));
  EXPECT_THAT(refused(R"({"measure": "latency"})"),
              HasSubstr(R"(measure = "latency", must be left out: its order is trained)"));
  EXPECT_THAT(refused(R"({"kind": "progress"})"), HasSubstr("step is missing"));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": "x"})"), HasSubstr(R"(step = "x", must be)"));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": 1, "steps": -1})"), HasSubstr("steps = -1"));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": 4000000, "steps": 100})"),
              HasSubstr("steps = 100, must be a whole number from 4000000 to "));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": 1, "loss": "small"})"),
              HasSubstr(R"(loss = "small", must be a number)"));
  EXPECT_THAT(refusal(Json::parse(R"({"worker": null, "evaluations": []})"), {}),
              StartsWith("the worker without a name has answered what cannot be true"));
  EXPECT_THAT(refusal(Json::parse(R"({"order": null})"), {}),
              HasSubstr("wrote what is no line of its protocol"))
      << "it is nobody's";
}

TEST_F(LyingWorkerTest, WhatIsMeasuredBeforeATrainingRunIsNotBelievedEither) {
  const auto refused = [this](const std::string& what, const char* line, const char* evaluation) {
    CommandExecutor executor(stepping_, lying(Json::parse(line), Json::parse(evaluation)));
    const auto task = make_task(stepping_, {"a|a|a|0.5"}, 0);
    const auto said = message_of<MachineError>([&] { (void)executor.inspect(task, what); });
    EXPECT_TRUE(said == "nothing was thrown" || said.starts_with(kThrice)) << said;
    return said;
  };
  EXPECT_EQ(refused("latency", "{}", "{}"), "nothing was thrown");
  EXPECT_EQ(refused("latency", "{}", R"({"status": "failed"})"), "nothing was thrown");
  EXPECT_THAT(refused("latency", R"({"evaluations": []})", "{}"), HasSubstr("0 evaluations"));
  EXPECT_THAT(refused("latency", R"({"measure": null})", "{}"),
              HasSubstr(R"(measure = "", must be latency)"));
  EXPECT_THAT(refused("latency", R"({"measure": "energy"})", "{}"),
              HasSubstr(R"(measure = "energy", must be latency)"));
  EXPECT_THAT(refused("latency", "{}", R"({"replicate": 1})"),
              HasSubstr("replicate = 1, must be 0"));
  EXPECT_THAT(refused("latency", "{}", R"({"status": "stopped_early"})"), HasSubstr("must be"));
  EXPECT_THAT(refused("latency", "{}", R"({"measured": {"latency": null}})"),
              HasSubstr("measured.latency is missing"));
  EXPECT_THAT(refused("latency", "{}", R"({"measured": {"latency": 3}})"),
              HasSubstr("measured.latency = 3, must be an object"));
  EXPECT_THAT(refused("latency", "{}", R"({"measured": {"latency": {"value": "low"}}})"),
              HasSubstr(R"(measured.latency.value = "low", must be a number)"));
  for (const auto* width : {"0", "1e6", "true", "-1"}) {
    const auto evaluation =
        R"({"measured": {"array_width": {"value": )" + std::string(width) + "}}}";
    EXPECT_THAT(refused(kArrayWidth, "{}", evaluation.c_str()),
                HasSubstr("measured.array_width.value = "));
  }
}

TEST_F(LyingWorkerTest, WhatAWorkerLiedAboutIsMeasuredAgain) {
  Texts warnings;
  const WarningListener listener([&](const std::string& text) { warnings.push_back(text); });
  auto chosen = lying({}, {{"replicate", 1}}, "lie once");
  chosen.array = 3;
  CommandExecutor executor(stepping_, chosen);
  submit(executor, "abc");
  const auto finished = rest(executor);
  ASSERT_EQ(finished.size(), 3U);
  for (const auto& [name, evaluation] : finished) {
    EXPECT_EQ(evaluation.status, Status::ok);
    EXPECT_EQ(evaluation.replicate, 0);
    EXPECT_EQ(evaluation.values.at("value"), value_of(name, 0));
  }
  EXPECT_THAT(warnings, ElementsAre(MatchesRegex(
                            "the worker node1:7 has answered what cannot be true, which is not "
                            "recorded: evaluation of [abc].a.a.0.5, replicate 0: replicate = 1, "
                            "must be 0")));
}

TEST_F(LyingWorkerTest, NothingOfALieIsRecordedThoughOnlyTheJudgeSeesIt) {
  const auto executor = std::make_shared<CommandExecutor>(
      measurement_, lying({}, {{"values", {{"value", nullptr}}}}));
  const Run run(folder_ / "s.sqlite", {.executor = executor});
  EXPECT_THAT(
      message_of<MachineError>([&] {
        run.ask({{0.5, 0, 0, 0}});
      }),
      MatchesRegex("evaluation [0-9a-f]+ of a.a.a.0.5, replicate 0, is ok, but nothing that "
                   "value is computed from was recorded of a.a.a.0.5; it is not recorded"));
  EXPECT_TRUE(run.store.evaluations().empty());
  // Nor before the search, where nobody judges yet.
  Store store(folder_ / "before.sqlite");
  RecordingEvaluator evaluator(
      std::shared_ptr<Measurement>(&measurement_, [](auto*) {}), store,
      [](Objective::Evaluations) { return Judgement(); },
      {.executor = executor, .compute = [](Objective::Evaluations evaluations) {
         for (const auto& one : fake_objectives().objectives) (void)one.value(evaluations);
       }});
  EXPECT_THAT(message_of<MachineError>(
                  [&] { (void)evaluator.evaluate({make_task(measurement_, {"a|a|a|0.5"}, 0)}); }),
              HasSubstr("nothing that value is computed from was recorded"));
  EXPECT_TRUE(store.evaluations().empty());
}

TEST(EngineLineTest, WhatIsNoLineOfTheProtocolIsSaid) {
  const auto refusal = [](const std::string& text) {
    return message_of<InputError>([&] { (void)read_engine_line(text, {}); });
  };
  EXPECT_THAT(refusal("Traceback"), StartsWith("it is no JSON: "));
  EXPECT_THAT(refusal(""), StartsWith("it is no JSON: "));
  EXPECT_THAT(refusal("\"\xff\""), StartsWith("it is no JSON: "));
  EXPECT_THAT(refusal(std::string(100'000, '[')), StartsWith("its JSON is nested more than 100"));
  EXPECT_EQ(refusal("[]"), "must be an object");
  EXPECT_EQ(refusal("{}"), "kind is missing");
  EXPECT_EQ(refusal(R"({"kind": 7})"), "kind = 7, must be a text");
  EXPECT_EQ(refusal(R"({"kind": "what"})"),
            R"(kind = "what", must be workers, progress, finished, lost, aside or refused)");
  EXPECT_EQ(refusal(R"({"kind": "workers"})"), "count is missing");
  for (const auto* count : {"-1", "1e300", "18446744073709551615", "true", "\"2\"", "1.0"}) {
    EXPECT_THAT(refusal(R"({"kind": "workers", "count": )" + std::string(count) + "}"),
                StartsWith("count = "));
  }
  EXPECT_THAT(refusal(R"({"kind": "workers", "count": 1, "slots": -1})"), StartsWith("slots = -1"));
  for (const auto* kind : {"finished", "progress", "lost"}) {
    EXPECT_EQ(refusal(R"({"kind": ")" + std::string(kind) + R"("})"), "order is missing");
    EXPECT_THAT(refusal(R"({"kind": ")" + std::string(kind) + R"(", "order": "x"})"),
                StartsWith(R"(order = "x", must be a whole number from 0 to)"));
  }
  EXPECT_EQ(refusal(R"({"kind": "lost", "order": 1, "machine": 1})"),
            "machine = 1, must be true or false");
  EXPECT_EQ(refusal(R"({"kind": "lost", "order": 1, "reason": 1})"), "reason = 1, must be a text");
  EXPECT_EQ(refusal(R"({"kind": "aside", "worker": "a"})"), "reason is missing");
  EXPECT_EQ(refusal(R"({"kind": "aside", "reason": "a"})"), "worker is missing");
  EXPECT_EQ(refusal(R"({"kind": "refused"})"), "reason is missing");
}

TEST(EngineLineTest, ALongReasonIsCutBetweenCharacters) {
  std::string reason = "x";
  for (int i = 0; i < 5000; ++i) reason += "\u00e9";
  const nlohmann::json line{{"kind", "lost"}, {"order", 1}, {"reason", reason}};
  const auto said = std::get<engine_line::Lost>(read_engine_line(line.dump(), {}));
  EXPECT_EQ(said.reason.size(), 1999U + 3U);
  EXPECT_NO_THROW((void)nlohmann::json(said.reason).dump());
}

TEST(EngineLineTest, WhatComesLateIsAskedOnlyWhereItsTaskIsOut) {
  const SteppingMeasurement measurement;
  auto out = Outstanding::of(measurement);
  EXPECT_EQ(out.steps, measurement.rungs());
  auto task = make_task(measurement, {"a|a|a|0.5"}, 0);
  task.until = 20;
  const auto begun = unmeasured(task);
  auto record = nlohmann::json(begun);
  record.merge_patch(nlohmann::json::parse(curve(point(20), "paused")));
  record.merge_patch(
      {{"values", {{"perplexity", std::exp(0.5)}}}, {"measured", {{"train_seconds", 1.0}}}});
  out.number_of[task.id] = 8;
  out.orders[8].members.push_back({task, begun});
  const auto read = [&](const nlohmann::json& evaluation) {
    const nlohmann::json line{
        {"kind", "finished"}, {"order", 5}, {"worker", "w"}, {"evaluations", {evaluation}}};
    return read_engine_line(line.dump(), out);
  };
  EXPECT_EQ(std::get<engine_line::Finished>(read(record)).evaluations.size(), 1U);
  auto other = record;
  other["replicate"] = 1;
  EXPECT_EQ(std::get<engine_line::Unsound>(read(other)).why,
            "evaluation of a|a|a|0.5, replicate 0: replicate = 1, must be 0");
  other["id"] = "of nobody";
  EXPECT_EQ(std::get<engine_line::Finished>(read(other)).evaluations.size(), 1U);
  // A training of the user's own, whose curve has steps alone.
  auto own = record;
  own["curve"][0]["valid"]["tokens"] = 0;
  own["values"] = {{"loss", 1.0}};
  EXPECT_EQ(std::get<engine_line::Finished>(read(own)).evaluations.size(), 1U);
  own["values"] = nlohmann::json::object();
  EXPECT_TRUE(std::holds_alternative<engine_line::Unsound>(read(own)));
  // As it was at an earlier rung, told again.
  auto earlier = record;
  earlier["curve"][0]["step"] = 10;
  const auto told = std::get<engine_line::Finished>(read(earlier)).evaluations.at(0);
  EXPECT_FALSE(is_result_of(told, task));
}

}  // namespace
}  // namespace nas::testing
