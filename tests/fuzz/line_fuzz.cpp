// A line of an engine, as workers have made it: what is taken can be recorded, and is what it was
// asked for.

#include <optional>
#include <variant>

#include <nlohmann/json.hpp>

#include "evaluation/engine_lines.hpp"
#include "fuzz/fuzz.hpp"

namespace {

using nas::fuzz::require;
using nlohmann::json;

nas::OrderedTask asked(const std::string& id, std::int64_t until = 0) {
  nas::OrderedTask asked;
  asked.task.candidate.name = id;
  asked.task.id = id;
  asked.task.identity = {{"fake", 1}};
  asked.task.until = until;
  asked.begun.id = id;
  asked.begun.candidate = id;
  asked.begun.identity = asked.task.identity;
  asked.begun.values = {{"flops", 5.0}};
  asked.begun.measured = {{"latency", {{"value", 2.5}}}};
  return asked;
}

/// Order 1 has two tasks, order 2 one that pauses at step 20, orders 3 and 4 measure before the
/// training.
const nas::Outstanding& outstanding() {
  static const nas::Outstanding out = [] {
    nas::Outstanding all;
    all.steps = {10, 20, 40};
    all.orders[1].members = {asked("a"), asked("b")};
    all.orders[2].members = {asked("c", 20)};
    all.orders[3] = {.members = {asked("d")}, .inspects = "latency"};
    all.orders[4] = {.members = {asked("d")}, .inspects = nas::kArrayWidth};
    all.number_of = {{"a", 1}, {"b", 1}, {"c", 2}};
    return all;
  }();
  return out;
}

/// What goes into messages and records must be UTF-8.
void require_text(const std::string& text) { (void)json(text).dump(); }

void check_evaluation(const nas::Evaluation& evaluation) {
  const json written = evaluation;
  (void)written.dump();
  (void)canonical_json(evaluation).dump();
  require(json(written.get<nas::Evaluation>()) == written, "an evaluation reads back as itself");
  require(evaluation.measured.is_object(), "what was measured has names");
  (void)evaluation.measured.value("train_seconds", 0.0);
  if (evaluation.status == nas::Status::paused) (void)answers(evaluation, 20);
}

struct Check {
  void operator()(const nas::engine_line::Workers& said) const {
    require(said.now.workers >= 0 && said.now.slots >= 0, "nobody is the fewest");
  }
  void operator()(const nas::engine_line::Progress& said) const {
    require_text(said.advance.worker);
    require(said.advance.step >= 0, "steps are counted from 0");
    require(said.advance.steps == 0 || said.advance.step <= said.advance.steps,
            "no more steps are taken than there are");
  }
  void operator()(const nas::engine_line::Finished& said) const {
    const auto& out = outstanding();
    require_text(said.worker + said.device + said.measure);
    for (const auto& evaluation : said.evaluations) check_evaluation(evaluation);
    const auto order = out.orders.find(said.order);
    if (order == out.orders.end()) {
      for (const auto& evaluation : said.evaluations) {
        const auto* task = out.find(evaluation.id);
        if (task == nullptr || !is_result_of(evaluation, task->task)) continue;
        require_sound(*task, evaluation, out.steps);
      }
      return;
    }
    const auto& [members, priority, started, inspects] = order->second;
    require(said.measure == inspects, "an order is answered by what it asks");
    require(said.evaluations.size() == members.size(), "each task of an order is answered");
    for (const auto& member : members) {
      const nas::Evaluation* answer = nullptr;
      for (const auto& evaluation : said.evaluations) {
        if (evaluation.id == member.task.id) answer = &evaluation;
      }
      require(answer != nullptr, "an order is answered by its own tasks");
      require_sound(member, *answer, inspects.empty() ? out.steps : std::vector<std::int64_t>());
      if (inspects.empty() || answer->status != nas::Status::ok) continue;
      (void)answer->measured.at(inspects).at("value").get<double>();
    }
  }
  void operator()(const nas::engine_line::Unsound& said) const {
    require_text(said.worker + said.why);
    require(!said.why.empty(), "a refusal says why");
  }
  void operator()(const nas::engine_line::Lost& said) const { require_text(said.reason); }
  void operator()(const nas::engine_line::Aside& said) const {
    require_text(said.worker + said.reason);
  }
  void operator()(const nas::engine_line::Refused& said) const { require_text(said.reason); }
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line(nas::fuzz::text(data, size));
  std::optional<nas::EngineLine> said;
  nas::fuzz::taken([&] { said = nas::read_engine_line(line, outstanding()); });
  // What is checked refuses nothing any more.
  if (said) std::visit(Check(), *said);
  return 0;
}
