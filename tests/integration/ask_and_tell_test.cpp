// Who measures changes no result: the process itself, a loop of one's own, workers that die.

#include "study/ask_and_tell.hpp"

#include <cstdio>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "integration/program.hpp"
#include "report/files.hpp"
#include "study/worker.hpp"

namespace nas::testing {
namespace {

using ::testing::HasSubstr;

/// Re-test and tuning, too.
const std::vector<std::string>& overrides() {
  static const std::vector<std::string> kOverrides{
      "algorithm={name: nsga2, population: 8, generations: 3}", "objectives=[perplexity, flops]",
      "budget.evaluations=12", "baseline.tune={trials: 2}", "retest={replicates: 2}"};
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

TEST_F(AskAndTellTest, WhatIsPutBackIsAskedForAgain) {
  const auto asked = study("asked");
  Worker worker(asked.experiment());
  AskAndTell loop(asked);
  const auto first = loop.ask();
  ASSERT_TRUE(first);
  loop.put_back(first->task.id);
  const auto again = loop.ask();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->task.id, first->task.id);
  loop.tell(worker.measure(order_json(*again)));
  while (!loop.ended()) tell_backwards(loop, worker);
  EXPECT_EQ(nas::canonical_export(loop.result()), alone());
}

std::string refusal(AskAndTell& study, const Evaluation& evaluation) {
  try {
    study.tell(evaluation);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_F(AskAndTellTest, AnAnswerMustBeOfAnOrderAndHaveWhatIsWanted) {
  AskAndTell loop(study("asked"));
  auto order = loop.ask();
  ASSERT_TRUE(order);
  auto& evaluation = order->evaluation;
  evaluation.status = Status::ok;
  EXPECT_THAT(refusal(loop, evaluation), HasSubstr("is ok, but no perplexity was recorded"));
  evaluation.values["perplexity"] = 12.0;
  loop.tell(evaluation);
  EXPECT_THAT(refusal(loop, evaluation), HasSubstr("must be that of an order that was asked for"));
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
  explicit WorkingProgram(const nlohmann::json& configuration) {
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) throw MachineError("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
      execl((std::string(NAS_BIN_DIR) + "/nas-work").c_str(), "nas-work", nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = fdopen(to[1], "w");
    out_ = fdopen(from[0], "r");
    send({{"kind", "run"}, {"config", configuration}});
  }
  ~WorkingProgram() {
    end(SIGKILL);
    fclose(in_);
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
  void end(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
};

nlohmann::json order_line(const Order& order) {
  auto line = order_json(order);
  line["kind"] = "order";
  line["order"] = 1;
  return line;
}

TEST_F(AskAndTellTest, AWorkerThatIsKilledCostsNothingButItsWork) {
  signal(SIGPIPE, SIG_IGN);
  const auto asked = study("asked");
  const auto& configuration = asked.experiment().resolved;
  auto worker = std::make_unique<WorkingProgram>(configuration);
  AskAndTell loop(asked);
  int orders = 0;
  int deaths = 0;
  while (auto order = loop.ask()) {
    worker->send(order_line(*order));
    if (++orders % 5 == 0) worker->end(SIGKILL);
    const auto answer = worker->receive();
    if (answer.is_null()) {
      ++deaths;
      loop.put_back(order->task.id);
      worker = std::make_unique<WorkingProgram>(configuration);
    } else {
      ASSERT_EQ(answer.at("kind"), "finished") << answer;
      loop.tell(answer.at("evaluation"));
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
  WorkingProgram worker(other);
  worker.send(order_line(*order));
  const auto answer = worker.receive();
  EXPECT_EQ(answer.at("kind"), "refused");
  EXPECT_THAT(answer.at("reason").get<std::string>(), HasSubstr("identity.model"));
}

TEST_F(AskAndTellTest, AWorkerSaysWhatIsWrongWithALine) {
  const auto fed = [this](const std::string& line) {
    std::ofstream(folder_ / "lines") << line << '\n';
    return run("nas-work", {},
               [this] { dup2(open((folder_ / "lines").c_str(), O_RDONLY), STDIN_FILENO); });
  };
  EXPECT_EQ(fed("[1]"), 2);
  EXPECT_THAT(text(), HasSubstr("line 1: must be a JSON object with the text \"kind\""));
  EXPECT_EQ(fed(R"({"kind": "order"})"), 2);
  EXPECT_THAT(text(), HasSubstr("an order before the run"));
  EXPECT_EQ(fed(R"({"kind": "runs"})"), 2);
  EXPECT_THAT(text(), HasSubstr("kind = runs, must be run or order"));
}

}  // namespace
}  // namespace nas::testing
