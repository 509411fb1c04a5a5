#include "evaluation/engine_lines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "evaluation/protocol.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

using protocol::beginning;
using protocol::must_be;
using protocol::shown;
using Type = protocol::Field::Type;

constexpr std::size_t kLongestReason = 2000;  // bytes

/// @return empty where it is missing.
std::string text_in(const Json& line, const char* name, std::size_t most = protocol::kLongestName) {
  return beginning(line.value(name, std::string()), most);
}

/// An evaluation of which each field has its type, whatever it says.
Evaluation read_record(const Json& record) {
  protocol::require_record(record);
  auto evaluation = record.get<Evaluation>();
  for (std::size_t i = 1; i < evaluation.curve.size(); ++i) {
    const auto before = evaluation.curve[i - 1].step;
    if (evaluation.curve[i].step > before) continue;
    must_be("curve[" + std::to_string(i) + "].step", evaluation.curve[i].step,
            "more than " + std::to_string(before));
  }
  const bool ends_in_curve =
      evaluation.status == Status::paused || evaluation.status == Status::stopped_early;
  if (ends_in_curve && evaluation.curve.empty()) {
    must_be("curve", record.at("curve"),
            "that of a training run which is " + std::string(to_string(evaluation.status)) +
                ", not empty");
  }
  return evaluation;
}

void require_identity_of(const Task& task, const Json& given) {
  if (given == task.identity) return;
  for (const auto* either : {&given, &task.identity}) {
    for (const auto& [key, value] : either->items()) {
      const auto wanted = task.identity.value(key, Json());
      const auto said = given.value(key, Json());
      if (said == wanted) continue;
      must_be("identity." + beginning(key), said, shown(wanted));
    }
  }
  must_be("identity", given, shown(task.identity));
}

/// What every training run has that has come to a validation step.
/// @param steps  validation steps.
void require_trained(const Evaluation& evaluation, const std::vector<std::int64_t>& steps) {
  for (std::size_t i = 0; i < evaluation.curve.size(); ++i) {
    const auto& point = evaluation.curve[i];
    if (!std::binary_search(steps.begin(), steps.end(), point.step)) {
      must_be("curve[" + std::to_string(i) + "].step", point.step, "a validation step");
    }
    const bool finite = std::isfinite(point.train_nll) && std::isfinite(point.valid.nll);
    if (finite) continue;
    throw InputError("curve[" + std::to_string(i) + "] is not finite, must be in a training run " +
                     "which is " + std::string(to_string(evaluation.status)));
  }
  // A value may be infinite: that is a divergence, which is found later (require_finite_values).
  const bool scored =
      evaluation.curve.back().valid.tokens > 0;  // else a training of the user's own
  if (evaluation.values.empty() || (scored && !evaluation.values.contains("perplexity"))) {
    throw InputError("values.perplexity is missing");
  }
  if (!evaluation.measured.contains("train_seconds")) {
    throw InputError("measured.train_seconds is missing");
  }
  const auto last = evaluation.curve.back().step;
  if (evaluation.status == Status::ok && last != steps.back()) {
    must_be("the last step of its curve", last,
            std::to_string(steps.back()) + ", at which a training run ends");
  }
}

/// Refuses what cannot be what an order is to measure before the training.
void require_inspected(const std::string& what, const Evaluation& evaluation) {
  if (evaluation.status != Status::ok) {
    if (!is_usable(evaluation)) return;
    must_be("status", to_string(evaluation.status), "ok, or that of a failure");
  }
  const auto name = "measured." + what;
  const auto measured = evaluation.measured.find(what);
  if (measured == evaluation.measured.end()) throw InputError(name + " is missing");
  if (!measured->is_object()) must_be(name, *measured, "an object with its \"value\"");
  const auto value = measured->value("value", Json());
  if (what == kArrayWidth) {
    protocol::require_type(value, {"", Type::whole, true, 1, protocol::kWidestOrder},
                           name + ".value");
  } else if (!value.is_number()) {
    must_be(name + ".value", value, "a number");
  }
}

std::string name_of(const Task& task) {
  return beginning(task.candidate.name) + ", replicate " + std::to_string(task.replicate);
}

/// Calls what may refuse an evaluation. @throws InputError which says of what task it is.
template <class Call>
void about(const Task& task, Call call) {
  try {
    call();
  } catch (const InputError& error) {
    throw InputError("evaluation of " + name_of(task) + ": " + error.what());
  }
}

/// Where a record says that it is of one of an order's tasks, else where it stands.
const OrderedTask& asked_for(const EngineOrder& order, const Json& record, std::size_t place) {
  const auto id = record.is_object() ? record.value("id", Json()) : Json();
  const auto found =
      std::find_if(order.members.begin(), order.members.end(),
                   [&id](const OrderedTask& member) { return id == member.task.id; });
  return found == order.members.end() ? order.members[place] : *found;
}

/// What an order that is out has come to.
std::vector<Evaluation> read_answer(const EngineOrder& order, const Json& records,
                                    const Outstanding& out) {
  if (records.size() != order.members.size()) {
    throw InputError(std::to_string(records.size()) + " evaluations, must be " +
                     std::to_string(order.members.size()) + ": one of each task of its order");
  }
  std::vector<Evaluation> evaluations;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto& asked = asked_for(order, records[i], i);
    about(asked.task, [&] {
      auto evaluation = read_record(records[i]);
      const bool inspected = !order.inspects.empty();
      require_sound(asked, evaluation, inspected ? std::vector<std::int64_t>() : out.steps);
      if (inspected) require_inspected(order.inspects, evaluation);
      if (!ids.insert(evaluation.id).second) throw InputError("it comes twice in one line");
      evaluations.push_back(std::move(evaluation));
    });
  }
  return evaluations;
}

/// What comes late, of an order that is not out any more.
std::vector<Evaluation> read_late(const Json& records, const Outstanding& out) {
  std::vector<Evaluation> evaluations;
  for (const auto& record : records) {
    auto evaluation = read_record(record);
    const auto* asked = out.find(evaluation.id);
    if (asked != nullptr && is_result_of(evaluation, asked->task)) {
      about(asked->task, [&] { require_sound(*asked, evaluation, out.steps); });
    }
    evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
}

void read_results(const Json& line, const Outstanding& out, engine_line::Finished& said) {
  said.device = text_in(line, "device");
  said.measure = line.value("measure", std::string());
  const auto& records = line.at("evaluations");
  const auto order = out.orders.find(said.order);
  if (order == out.orders.end()) {
    // No other order has this number: what is lost is ordered again under a new one.
    if (said.measure.empty()) said.evaluations = read_late(records, out);
    return;
  }
  if (const auto& wanted = order->second.inspects; said.measure != wanted) {
    must_be("measure", said.measure, wanted.empty() ? "left out: its order is trained" : wanted);
  }
  said.evaluations = read_answer(order->second, records, out);
}

void read_advance(const Json& line, Advance& advance) {
  advance.step = line.at("step");
  advance.steps = line.value("steps", std::int64_t{0});
  if (advance.steps != 0) {
    protocol::require_type(advance.steps, {"", Type::whole, true, advance.step}, "steps");
  }
  auto loss = line.value("loss", Json());
  if (loss.is_null()) loss = "nan";  // not known yet
  protocol::require_type(loss, {"", Type::number}, "loss");
  advance.loss = read_number(loss);
}

/// The source of a line of a worker.
engine_line::Unsound source_of(const Json& line) {
  const auto worker = line.value("worker", Json());
  protocol::require_fields(line, std::array{protocol::kOrder});
  return {.order = line.at("order"),
          .worker = worker.is_string() ? beginning(worker.get<std::string>()) : ""};
}

/// @param why  what of its line cannot be true.
engine_line::Unsound blamed(engine_line::Unsound source, const std::string& why,
                            const Outstanding& out) {
  const auto order = out.orders.find(source.order);
  const bool named = why.starts_with("evaluation of ") || order == out.orders.end();
  if (!named) source.why = "order of " + name_of(order->second.members.front().task) + ": ";
  source.why += why;
  return source;
}

/// Reads what a worker says. @param read  called with the source of the line.
template <class Read>
EngineLine of_worker(const Json& line, const Outstanding& out, Read read) {
  const auto source = source_of(line);
  try {
    return read(source);
  } catch (const InputError& error) {
    return blamed(source, error.what(), out);
  } catch (const Json::exception& error) {
    return blamed(source, error.what(), out);
  }
}

EngineLine read_line(const Json& line, const Outstanding& out) {
  const auto fields = protocol::fields_of(line);
  const auto kind = line.at("kind").get<std::string>();
  if (kind == "progress") {
    return of_worker(line, out, [&](const engine_line::Unsound& source) -> EngineLine {
      engine_line::Progress said{.order = source.order, .advance = {.worker = source.worker}};
      if (!out.orders.contains(said.order)) return said;
      protocol::require_fields(line, fields);
      read_advance(line, said.advance);
      return said;
    });
  }
  if (kind == "finished") {
    return of_worker(line, out, [&](const engine_line::Unsound& source) -> EngineLine {
      engine_line::Finished said{.order = source.order, .worker = source.worker};
      protocol::require_fields(line, fields);
      read_results(line, out, said);
      return said;
    });
  }
  protocol::require_fields(line, fields);
  if (kind == "workers") {
    const int count = line.at("count");
    return engine_line::Workers{{.workers = count, .slots = line.value("slots", count)}};
  }
  const auto reason = text_in(line, "reason", kLongestReason);
  if (kind == "aside")
    return engine_line::Aside{.worker = text_in(line, "worker"), .reason = reason};
  if (kind == "refused") return engine_line::Refused{.reason = reason};
  return engine_line::Lost{
      .order = line.at("order"), .reason = reason, .machine = line.value("machine", false)};
}

}  // namespace

Outstanding Outstanding::of(const Measurement& measurement) {
  return {.steps = measurement.expensive() ? measurement.rungs() : std::vector<std::int64_t>()};
}

const OrderedTask* Outstanding::find(const std::string& id) const {
  const auto number = number_of.find(id);
  if (number == number_of.end()) return nullptr;
  const auto& members = orders.at(number->second).members;
  const auto found = std::find_if(members.begin(), members.end(), [&id](const OrderedTask& member) {
    return member.task.id == id;
  });
  return found == members.end() ? nullptr : &*found;
}

OrderedTask* Outstanding::find(const std::string& id) {
  return const_cast<OrderedTask*>(std::as_const(*this).find(id));
}

void require_sound(const OrderedTask& asked, const Evaluation& evaluation,
                   const std::vector<std::int64_t>& steps) {
  const bool trained = !steps.empty();
  const auto& task = asked.task;
  if (evaluation.id != task.id) must_be("id", evaluation.id, shown(task.id));
  if (evaluation.candidate != task.candidate.name) {
    must_be("candidate", evaluation.candidate, shown(task.candidate.name));
  }
  if (evaluation.replicate != task.replicate) {
    must_be("replicate", evaluation.replicate, std::to_string(task.replicate));
  }
  require_identity_of(task, evaluation.identity);
  if (!is_usable(evaluation)) return;
  if (evaluation.curve.empty() && (trained || evaluation.status != Status::ok)) {
    must_be("curve", Json::array(), "that of a training run, not empty");
  }
  require_wanted_pause(task, evaluation);
  if (trained) require_trained(evaluation, steps);
}

void require_wanted_pause(const Task& task, const Evaluation& evaluation) {
  if (evaluation.status != Status::paused) return;
  if (task.until == 0) {
    must_be("status", to_string(evaluation.status), "that of an end: its task does not pause");
  }
  const auto& curve = evaluation.curve;
  if (curve.empty()) {
    must_be("curve", Json::array(), "that of a training run which is paused, not empty");
  }
  if (curve.back().step < task.until) {
    must_be("the last step of its curve", curve.back().step,
            "at least " + std::to_string(task.until) + ", at which its task pauses");
  }
}

bool is_result_of(const Evaluation& evaluation, const Task& task) {
  if (evaluation.id != task.id) return false;
  if (evaluation.status != Status::paused) return true;
  return task.until > 0 && !evaluation.curve.empty() && evaluation.curve.back().step == task.until;
}

EngineLine read_engine_line(const std::string& text, const Outstanding& out) {
  const auto line = parse_record(text);
  try {
    return read_line(line, out);
  } catch (const Json::exception& error) {
    throw InputError(error.what());
  }
}

}  // namespace nas
