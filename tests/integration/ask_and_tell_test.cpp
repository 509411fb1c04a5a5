// Who measures changes no result: the process itself, a loop of one's own, workers that die.

#include "study/ask_and_tell.hpp"

#include <cstdio>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "evaluation/command_executor.hpp"
#include "integration/program.hpp"
#include "report/files.hpp"
#include "study/worker.hpp"

namespace nas::testing {
namespace {

/// A re-test, too.
const Texts& overrides() {
  static const Texts kOverrides{"algorithm={name: nsga2, population: 8, generations: 3}",
                                "objectives=[perplexity, flops]", "budget.evaluations=12",
                                "retest={replicates: 2}"};
  return kOverrides;
}

class AskAndTellTest : public ProgramTest {
 protected:
  [[nodiscard]] Study study(const std::string& name) const {
    return Study(config("smoke.yaml"), overrides(), folder_ / name);
  }
  /// What the study comes to by itself.
  [[nodiscard]] std::string alone() const { return nas::canonical_export(study("alone").run()); }
};

/// Takes as many orders as there are, and answers them in the reverse order.
void tell_backwards(AskAndTell& study, Worker& worker) {
  std::vector<Order> orders;
  while (auto order = study.ask()) orders.push_back(std::move(*order));
  for (; !orders.empty(); orders.pop_back()) {
    const auto text = order_json(orders.back()).dump();
    study.tell(nlohmann::json::parse(worker.measure(nlohmann::json::parse(text)).dump()));
  }
}

TEST_F(AskAndTellTest, WhoMeasuresAndInWhichOrderChangesNothing) {
  const auto asked = study("asked");
  Worker worker(recorded_experiment(asked.experiment().resolved));
  AskAndTell loop(asked);
  while (!loop.ended()) tell_backwards(loop, worker);
  EXPECT_EQ(nas::canonical_export(loop.result()), alone());
}

TEST_F(AskAndTellTest, WhatWasToldIsKeptAndTheStudyGoesOn) {
  const auto asked = study("asked");
  Worker worker(asked.experiment());
  std::set<std::string> measured;
  for (bool ended = false; !ended;) {
    AskAndTell loop(asked);
    // The third order is out when the process leaves.
    for (int i = 0; i < 3; ++i) {
      const auto order = loop.ask();
      if (!order || i == 2) break;
      EXPECT_TRUE(measured.insert(order->task.id).second) << "it was told before";
      loop.tell(worker.measure(order_json(*order)));
    }
    ended = loop.ended();
  }
  EXPECT_EQ(nas::canonical_export(study("asked").run()), alone());
}

std::string refusal(AskAndTell& study, const Evaluation& evaluation) {
  return message_of<InputError>([&] { study.tell(evaluation); });
}

TEST_F(AskAndTellTest, AnAnswerMustBeOfAnOrderAndHaveWhatIsWanted) {
  AskAndTell loop(study("asked"));
  auto order = loop.ask();
  ASSERT_TRUE(order);
  auto& evaluation = order->evaluation;
  evaluation.status = Status::paused;
  EXPECT_EQ(refusal(loop, evaluation),
            "status = \"paused\", must be that of an end: its task does not pause");
  evaluation.status = Status::ok;
  EXPECT_THAT(refusal(loop, evaluation), HasSubstr("is ok, but no perplexity was recorded"));
  evaluation.values["perplexity"] = 0.5;
  EXPECT_THAT(refusal(loop, evaluation), HasSubstr("perplexity = 0.5, must be in [1, inf]"));
  evaluation.values["perplexity"] = 12.0;
  loop.tell(evaluation);
  EXPECT_THAT(refusal(loop, evaluation), HasSubstr("must be that of an order that was asked for"));
}

TEST_F(AskAndTellTest, WhatReplicatesTellTogetherIsNotWantedOfOne) {
  AskAndTell loop(Study(config("smoke.yaml"),
                        {"algorithm={name: nsga2, population: 8, generations: 1}",
                         "objectives=[perplexity, divergence_rate]", "evaluation.replicates=2"},
                        folder_ / "asked"));
  auto order = loop.ask();
  ASSERT_TRUE(order);
  order->evaluation.status = Status::ok;
  order->evaluation.values["perplexity"] = 12.0;
  loop.tell(order->evaluation);
}

TEST_F(AskAndTellTest, APauseHasACurveToItsStep) {
  AskAndTell loop(
      Study(config("smoke.yaml"),
            {"objectives=[{name: perplexity, range: [1, 100]}, attention_flops]",
             "training.steps=6", "training.checkpoints=[2, 4]", "fidelity={rungs: [2, 4]}",
             "algorithm={name: nsga2_async, population: 6, evaluations: 27, in_flight: 6}"},
            folder_ / "asked"));
  auto baseline = loop.ask();
  ASSERT_TRUE(baseline);
  baseline->evaluation.status = Status::ok;
  baseline->evaluation.values["perplexity"] = 12.0;
  loop.tell(baseline->evaluation);
  auto order = loop.ask();
  ASSERT_TRUE(order);
  ASSERT_EQ(order->task.until, 2);
  auto& evaluation = order->evaluation;
  evaluation.status = Status::paused;
  evaluation.values["perplexity"] = 12.0;
  EXPECT_EQ(refusal(loop, evaluation),
            "curve = [], must be that of a training run which is paused, not empty");
  CurvePoint point;
  point.step = 1;
  evaluation.curve = {point};
  EXPECT_EQ(refusal(loop, evaluation),
            "the last step of its curve = 1, must be at least 2, at which its task pauses");
  evaluation.curve.back().step = 2;
  loop.tell(evaluation);
}

TEST_F(AskAndTellTest, OfWhatAnotherProgramMeasuredThereIsNoModel) {
  const auto folder = folder_ / "asked";
  {
    AskAndTell loop(Study(config("smoke.yaml"), {"budget.evaluations=3"}, folder));
    while (!loop.ended()) {
      while (auto order = loop.ask()) {
        order->evaluation.status = Status::ok;
        order->evaluation.values["perplexity"] = 12.0;
        loop.tell(order->evaluation);
      }
    }
    (void)loop.result();
  }
  const auto out = folder_ / "out";
  const std::vector<std::pair<std::string, Texts>> readers{
      {"nas-export", {folder.string(), "--format", "pytorch", "--output", out.string()}},
      {"nas-model", {"take", folder.string(), "best", "--output", out.string()}}};
  for (const auto& [program, words] : readers) {
    EXPECT_EQ(run(program, words, {}, Start::executed), 2) << program;
    EXPECT_THAT(text(), HasSubstr(": its training runs were measured by another program, which "
                                  "recorded no learning curve, so that there is no model"));
  }
  EXPECT_EQ(run("nas-data", {"table", "pack", folder.string(), "--output", out.string()}, {},
                Start::executed),
            2);
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(AskAndTellTest, WhatEndsTheStudyReachesWhoAsks) {
  AskAndTell loop(Study(config("smoke.yaml"), {"evaluation.device=cuda:7"}, folder_ / "none"));
  EXPECT_FALSE(loop.ask());
  EXPECT_TRUE(loop.ended());
  EXPECT_THROW(static_cast<void>(loop.result()), InputError);
}

/// nas-work as a child process that answers over pipes.
class WorkingProgram {
 public:
  explicit WorkingProgram(nlohmann::json run, const std::string& folder = "") {
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) throw MachineError("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
      const auto program = program_folder() + "/nas-work";
      execl(program.c_str(), "nas-work", folder.empty() ? nullptr : "--folder", folder.c_str(),
            nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = fdopen(to[1], "w");
    out_ = fdopen(from[0], "r");
    run["kind"] = "run";
    send(run);
  }
  ~WorkingProgram() {
    end(SIGKILL);
    if (in_ != nullptr) fclose(in_);
    fclose(out_);
  }
  WorkingProgram(const WorkingProgram&) = delete;
  WorkingProgram& operator=(const WorkingProgram&) = delete;

  void send(const nlohmann::json& line) {
    fputs((line.dump() + "\n").c_str(), in_);
    fflush(in_);
  }
  /// @return null where it is dead.
  nlohmann::json receive() {
    std::string line;
    for (int c = fgetc(out_); c != EOF && c != '\n'; c = fgetc(out_)) {
      line.push_back(static_cast<char>(c));
    }
    return line.empty() ? nlohmann::json() : nlohmann::json::parse(line);
  }
  /// What comes of an order; null where it is dead.
  nlohmann::json answer() {
    auto line = receive();
    while (!line.is_null() && (line.at("kind") == "workers" || line.at("kind") == "progress")) {
      line = receive();
    }
    return line;
  }
  /// What comes next of a kind.
  nlohmann::json next(const std::string& kind) {
    auto line = receive();
    while (!line.is_null() && line.at("kind") != kind) line = receive();
    return line;
  }
  void end(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    wait();
  }
  void signal(int number) const { kill(pid_, number); }
  void end_input() {
    fclose(in_);
    in_ = nullptr;
  }
  /// @return the exit code; 128 + signal if a signal ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
};

nlohmann::json order_line(const Order& order, int number = 1) {
  return {{"kind", "order"}, {"order", number}, {"tasks", {order_json(order)}}};
}

TEST_F(AskAndTellTest, AWorkerThatIsKilledCostsNothingButItsWork) {
  signal(SIGPIPE, SIG_IGN);
  const auto asked = study("asked");
  const auto& configuration = asked.experiment().resolved;
  auto worker = std::make_unique<WorkingProgram>(nlohmann::json{{"config", configuration}});
  AskAndTell loop(asked);
  int orders = 0;
  int deaths = 0;
  while (auto order = loop.ask()) {
    worker->send(order_line(*order));
    if (++orders % 5 == 0) worker->end(SIGKILL);
    const auto answer = worker->answer();
    if (answer.is_null()) {
      ++deaths;
      loop.put_back(order->task.id);
      worker = std::make_unique<WorkingProgram>(nlohmann::json{{"config", configuration}});
    } else {
      ASSERT_EQ(answer.at("kind"), "finished") << answer;
      loop.tell(answer.at("evaluations").front());
    }
  }
  EXPECT_GT(deaths, 1);
  EXPECT_EQ(nas::canonical_export(loop.result()), alone());
}

TEST_F(AskAndTellTest, AWorkerRefusesWhatItWouldMeasureOtherwise) {
  AskAndTell loop(study("asked"));
  const auto order = loop.ask();
  ASSERT_TRUE(order);
  auto other = study("asked").experiment().resolved;
  other["model"]["width"] = 32;
  WorkingProgram worker(nlohmann::json{{"config", other}});
  worker.send(order_line(*order));
  const auto answer = worker.answer();
  EXPECT_EQ(answer.at("kind"), "refused");
  EXPECT_THAT(answer.at("reason").get<std::string>(), HasSubstr("identity.model"));
}

TEST_F(AskAndTellTest, AWorkerRefusesAnEvaluationOfAnotherTask) {
  const auto asked = study("asked");
  AskAndTell loop(asked);
  const auto order = loop.ask();
  ASSERT_TRUE(order);
  const auto same = order_json(*order);
  auto other = same;
  other["evaluation"]["id"] = "another";
  const auto refusal =
      "task " + order->task.id + ": evaluation.id = another, must be that of the task";
  Worker worker(asked.experiment());
  EXPECT_EQ(message_of<InputError>([&] { (void)worker.measure(other); }), refusal);
  EXPECT_EQ(message_of<InputError>([&] { (void)worker.inspect(other, kArrayWidth); }), refusal);
  const std::vector<nlohmann::json> twice(2, same);
  EXPECT_EQ(message_of<InputError>([&] { (void)worker.measure_all(twice); }),
            "task " + order->task.id + ": comes twice in one order, must come once");
  // The program says so, and goes on.
  WorkingProgram program(nlohmann::json{{"config", asked.experiment().resolved}});
  program.send({{"kind", "order"}, {"order", 1}, {"tasks", {other}}});
  const auto answer = program.answer();
  EXPECT_EQ(answer.at("kind"), "refused") << answer;
  EXPECT_EQ(answer.at("reason"), refusal);
  program.send(order_line(*order, 2));
  EXPECT_EQ(program.answer().at("kind"), "finished");
}

/// Between taking its first order and saying so it may be asked for a sign of life at any moment.
TEST_F(AskAndTellTest, AWorkerThatHearsMuchAsItBeginsGoesOn) {
  signal(SIGPIPE, SIG_IGN);
  const auto asked = study("asked");
  AskAndTell loop(asked);
  const auto order = loop.ask();
  ASSERT_TRUE(order);
  for (int i = 0; i < 3; ++i) {
    WorkingProgram worker(nlohmann::json{{"config", asked.experiment().resolved}});
    worker.send(order_line(*order));
    for (int line = 0; line < 20'000; ++line) worker.send({{"kind", "withdraw"}, {"order", 2}});
    worker.send({{"kind", "end"}, {"save", false}});
    const auto answer = worker.answer();
    ASSERT_FALSE(answer.is_null());
    EXPECT_EQ(answer.at("kind"), "finished");
    EXPECT_EQ(worker.wait(), 0);
  }
}

TEST_F(AskAndTellTest, AWorkerSaysWhatIsWrongWithALine) {
  const auto fed = [this](const std::string& line, const Texts& words = {}) {
    std::ofstream(folder_ / "lines") << line << '\n';
    return run("nas-work", words,
               [this] { dup2(open((folder_ / "lines").c_str(), O_RDONLY), STDIN_FILENO); });
  };
  EXPECT_EQ(fed("[1]"), 2);
  EXPECT_THAT(text(), HasSubstr("line 1: must be a JSON object with the text \"kind\""));
  EXPECT_EQ(fed(R"({"kind": "order"})"), 2);
  EXPECT_THAT(text(), HasSubstr("an order before the run"));
  EXPECT_EQ(fed(R"({"kind": "runs"})"), 2);
  EXPECT_THAT(text(), HasSubstr("kind = runs, must be run, order, withdraw or end"));
  EXPECT_EQ(fed(R"({"kind": "end", "save": 3})"), 2);
  EXPECT_THAT(text(), HasSubstr("line 1: save: must be true or false"));
  EXPECT_EQ(fed(R"({"kind": "run", "config": 3})"), 2);
  EXPECT_THAT(text(), HasSubstr(R"({"kind":"refused","reason":)"));
  for (const std::string word : {"--frobnicate", "runs/x", "--frob=3"}) {
    EXPECT_EQ(fed(R"({"kind": "end"})", {"--device", "cpu", word}), 2);
    EXPECT_THAT(text(), HasSubstr("'" + word + "', must be key.path=value; nas-work --help"));
  }
  const auto scratch = folder_ / "scratch";
  EXPECT_EQ(fed("", {"--scratch", scratch.string(), "--device", "auto", "--slot", "x"}), 2);
  EXPECT_THAT(text(), HasSubstr("--slot x, must be a number from 0 on"));
  EXPECT_FALSE(fs::exists(scratch));
  EXPECT_EQ(fed("", {"--device", "cpu", "--help"}), 0);
  EXPECT_THAT(text(), HasSubstr("\n  143  stopped by a signal"));
}

TEST_F(AskAndTellTest, ACheckpointGoesOnceItsResultIsWritten) {
  const auto asked = study("asked");
  AskAndTell loop(asked);
  const auto order = loop.ask();
  ASSERT_TRUE(order);
  const nlohmann::json first{{"kind", "run"}, {"config", asked.experiment().resolved}};
  std::ofstream(folder_ / "lines") << first << '\n'
                                   << order_line(*order) << '\n'
                                   << R"({"kind": "end", "save": false})" << '\n';
  const auto code = [&](const std::string& scratch, const std::function<void()>& output) {
    return run(
        "nas-work", {"--scratch", (folder_ / scratch).string()},
        [&] {
          dup2(open((folder_ / "lines").c_str(), O_RDONLY), STDIN_FILENO);
          output();
        },
        Start::executed);
  };
  const auto checkpoints = [this](const std::string& scratch) {
    std::error_code none;
    return std::distance(fs::directory_iterator(folder_ / scratch / "checkpoints", none),
                         fs::directory_iterator());
  };
  EXPECT_EQ(code("written", [] {}), 0) << text();
  EXPECT_THAT(text(), HasSubstr("\"kind\":\"finished\""));
  EXPECT_EQ(checkpoints("written"), 0);
  const auto nobody_reads = [] {
    int ends[2];
    if (pipe(ends) != 0) _exit(1);
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
  };
  EXPECT_EQ(code("unread", nobody_reads), 0) << text();
  EXPECT_EQ(checkpoints("unread"), 1);
  const auto full = [] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  EXPECT_EQ(code("full", full), 75);
  EXPECT_THAT(text(), HasSubstr("nas-work: standard output: cannot be written: No space left"));
}

TEST_F(AskAndTellTest, AWorkerRefusesARunThatItWouldMeasureOtherwise) {
  const auto asked = study("asked");
  const nlohmann::json run{{"config", asked.experiment().resolved}};
  const auto refusal = [&](const std::string& key, const nlohmann::json& value) {
    auto other = run;
    other[key] = value;
    WorkingProgram worker(other);
    const auto line = worker.next("refused");
    EXPECT_EQ(worker.wait(), 2);
    return line.is_null() ? std::string() : line.at("reason").get<std::string>();
  };
  EXPECT_EQ(refusal("protocol", 2), "protocol = 2, must be 1");
  EXPECT_THAT(refusal("revision", "of yesterday"), HasSubstr("revision = of yesterday, must be "));
  EXPECT_THAT(refusal("device", "abacus"), HasSubstr("device = abacus, must be "));
  AskAndTell loop(asked);
  auto identity = loop.ask()->task.identity;
  for (const auto* own : {"candidate", "replicate"}) identity.erase(own);
  for (const auto* key : {"corpus_hash", "semantics", "results_version"}) {
    auto other = identity;
    other[key] = "x";
    const auto reason = refusal("identity", other);
    EXPECT_THAT(reason, HasSubstr("identity." + std::string(key) + " = \"x\", must be " +
                                  identity[key].dump() + " to be measured here"));
  }
  WorkingProgram worker(nlohmann::json{{"config", run["config"]}, {"identity", identity}});
  EXPECT_EQ(worker.next("workers").at("slots"), 1);
}

/// A study whose training runs last longer than anybody waits.
class LongWorkTest : public AskAndTellTest {
 protected:
  LongWorkTest()
      : study_(Study(config("smoke.yaml"), {"training.steps=1000000", "evaluation.replicates=3"},
                     folder_ / "asked")),
        run_{{"config", study_.experiment().resolved}, {"grace", 20}} {
    fs::create_directory(folder_ / "asked");
  }
  [[nodiscard]] std::string folder() const { return (folder_ / "asked").string(); }
  /// Lets a worker train until it has taken some steps.
  static nlohmann::json begin(WorkingProgram& worker, const Order& order) {
    worker.send(order_line(order));
    auto progress = worker.next("progress");
    EXPECT_EQ(progress.at("step"), 0) << "it says at once that it has begun";
    while (progress.at("step") == 0) progress = worker.next("progress");
    return progress;
  }
  [[nodiscard]] std::int64_t num_checkpoints() const {
    std::error_code none;
    return std::distance(fs::directory_iterator(folder_ / "asked/checkpoints", none),
                         fs::directory_iterator());
  }
  Study study_;
  nlohmann::json run_;
};

TEST_F(LongWorkTest, AnEndInWhateverFormWritesCheckpointsAndTheNextWorkerGoesOn) {
  AskAndTell loop(study_);
  const auto order = loop.ask();
  ASSERT_TRUE(order);
  const std::vector<std::function<void(WorkingProgram&)>> ends{
      [](WorkingProgram& worker) { worker.end_input(); },
      [](WorkingProgram& worker) {
        worker.send({{"kind", "end"}, {"save", true}});
      },
      [](WorkingProgram& worker) { worker.signal(SIGTERM); }};
  std::int64_t step = 0;
  for (const auto& end : ends) {
    WorkingProgram worker(run_, folder());
    const auto progress = begin(worker, *order);
    EXPECT_GT(progress.at("step").get<std::int64_t>(), step) << "it goes on from the checkpoint";
    step = progress.at("step");
    EXPECT_EQ(progress.at("steps"), 1000000);
    end(worker);
    EXPECT_EQ(worker.wait(), 143);
    EXPECT_EQ(num_checkpoints(), 1);
  }
}

TEST_F(LongWorkTest, WhatIsWithdrawnGetsNoAnswerAndTheWorkerGoesOn) {
  AskAndTell loop(study_);
  const auto first = loop.ask();
  const auto second = loop.ask();
  const auto third = loop.ask();
  ASSERT_TRUE(third);
  WorkingProgram worker(run_, folder());
  begin(worker, *first);
  worker.send(order_line(*second, 2));
  auto urgent = order_line(*third, 3);
  urgent["priority"] = 1;
  worker.send(urgent);
  worker.send({{"kind", "withdraw"}, {"order", 2}});
  worker.send({{"kind", "withdraw"}, {"order", 1}});
  auto line = worker.next("progress");
  while (line.at("order") == 1) line = worker.next("progress");
  EXPECT_EQ(line.at("order"), 3);
  EXPECT_EQ(num_checkpoints(), 1) << "of what it was at";
  worker.send({{"kind", "withdraw"}, {"order", 3}});
  worker.send({{"kind", "end"}, {"save", false}});
  EXPECT_EQ(worker.wait(), 0);
}

TEST_F(AskAndTellTest, AWorkerDoesWhatIsLeftWhereNothingIsToBeSaved) {
  const auto asked = study("asked");
  AskAndTell loop(asked);
  WorkingProgram worker(nlohmann::json{{"config", asked.experiment().resolved}});
  int orders = 0;
  while (const auto order = loop.ask()) {
    if (++orders > 3) break;
    worker.send(order_line(*order, orders));
  }
  worker.send({{"kind", "end"}, {"save", false}});
  std::set<int> answered;
  for (auto line = worker.answer(); !line.is_null(); line = worker.answer()) {
    EXPECT_EQ(line.at("kind"), "finished") << line;
    answered.insert(line.at("order").get<int>());
  }
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_EQ(std::ssize(answered), std::min(orders, 3));
}

}  // namespace
}  // namespace nas::testing
