#include "evaluation/engine_lines.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

/// Beyond it, doubles do not count one by one.
constexpr std::int64_t kLargestCount = std::int64_t{1} << 53U;
constexpr std::int64_t kMostWorkers = 1'000'000;
constexpr std::int64_t kWidestOrder = 65536;
constexpr std::size_t kLongestName = 200;     // bytes, of a worker, a device or a candidate
constexpr std::size_t kLongestReason = 2000;  // bytes

/// So many bytes of a text, at whose end no character is cut.
std::string beginning(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most) + "...";
}

std::string shown(const Json& value) { return beginning(value.dump(), 100); }

[[noreturn]] void must_be(const std::string& what, const Json& given, const std::string& allowed) {
  throw InputError(what + " = " + shown(given) + ", must be " + allowed);
}

const Json& field_of(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end()) throw InputError(name + " is missing");
  return *found;
}

// The types are looked at here since JSON's conversions are generous: a boolean becomes a number, a
// large number whatever fits.

/// @param what  its name in the message.
std::int64_t whole_number_of(const Json& value, const std::string& what, std::int64_t least,
                             std::int64_t most) {
  const bool beyond =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (value.is_number_integer() && !beyond) {
    const auto number = value.get<std::int64_t>();
    if (number >= least && number <= most) return number;
  }
  must_be(what, value,
          "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

void require_a_number(const Json& value, const std::string& what) {
  if (value.is_number()) return;
  if (value == "nan" || value == "inf" || value == "-inf") return;  // as number_json() has them
  must_be(what, value, "a number");
}

void require_an_amount(const Json& value, const std::string& what) {
  if (value.is_number() && value.get<double>() >= 0.0) return;
  must_be(what, value, "a number of at least 0");
}

std::string text_in(const Json& object, const std::string& name) {
  const auto& value = field_of(object, name);
  if (!value.is_string()) must_be(name, value, "a text");
  return value.get<std::string>();
}

/// @return nothing where it is missing.
std::string text_if_any(const Json& object, const std::string& name, std::size_t most) {
  return object.contains(name) ? beginning(text_in(object, name), most) : std::string();
}

void require_point(const Json& point, const std::string& what) {
  whole_number_of(field_of(point, "step"), what + ".step", 0, kLargestCount);
  require_a_number(field_of(point, "train_nll"), what + ".train_nll");
  require_an_amount(field_of(point, "seconds"), what + ".seconds");
  const auto& valid = field_of(point, "valid");
  for (const auto* sum : {"nll", "pad_nll", "unknown_nll", "batch_mean_nll"}) {
    require_a_number(field_of(valid, sum), what + ".valid." + sum);
  }
  for (const auto* count : {"tokens", "correct", "pad_tokens", "unknown_tokens", "batches"}) {
    whole_number_of(field_of(valid, count), what + ".valid." + count, kNotCounted, kLargestCount);
  }
}

/// What is measured is anybody's, but for what this program reads again.
void require_measured(const Json& measured) {
  if (!measured.is_object()) must_be("measured", measured, "an object");
  for (const auto* name :
       {"train_seconds", "cpu_seconds", "worker_seconds", "peak_bytes", kFailedSeconds}) {
    if (const auto found = measured.find(name); found != measured.end()) {
      require_an_amount(*found, std::string("measured.") + name);
    }
  }
  if (const auto array = measured.find("array"); array != measured.end()) {
    whole_number_of(*array, "measured.array", 1, kWidestOrder);
  }
  for (const auto* name : {"started", "host", "model", "device"}) {
    const auto found = measured.find(name);
    if (found == measured.end() || found->is_string()) continue;
    must_be(std::string("measured.") + name, *found, "a text");
  }
}

/// An evaluation of which each field has its type, whatever it says.
Evaluation read_record(const Json& record, std::size_t longest) {
  if (const auto size = record.dump().size(); size > longest) {
    throw InputError("its record has " + std::to_string(size) + " bytes, must have at most " +
                     std::to_string(longest));
  }
  for (const auto* name : {"id", "candidate", "status", "reason"}) text_in(record, name);
  whole_number_of(field_of(record, "replicate"), "replicate", 0, kLargestCount);
  if (!field_of(record, "identity").is_object()) {
    must_be("identity", record.at("identity"), "an object");
  }
  const auto& curve = field_of(record, "curve");
  if (!curve.is_array()) must_be("curve", curve, "a list");
  for (std::size_t i = 0; i < curve.size(); ++i) {
    require_point(curve[i], "curve[" + std::to_string(i) + "]");
  }
  const auto& values = field_of(record, "values");
  if (!values.is_object()) must_be("values", values, "an object");
  for (const auto& [name, value] : values.items()) {
    require_a_number(value, "values." + beginning(name, kLongestName));
  }
  require_measured(field_of(record, "measured"));

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
    must_be("curve", curve,
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
      must_be("identity." + beginning(key, kLongestName), said, shown(wanted));
    }
  }
  must_be("identity", given, shown(task.identity));
}

/// What was known beforehand: values by formula, and what was measured before the training.
void require_kept(const Evaluation& begun, const Evaluation& evaluation) {
  for (const auto& [name, value] : begun.values) {
    const auto found = evaluation.values.find(name);
    const bool kept = found != evaluation.values.end() &&
                      (found->second == value || (std::isnan(found->second) && std::isnan(value)));
    if (kept) continue;
    must_be("values." + name,
            found == evaluation.values.end() ? Json() : number_json(found->second),
            number_json(value).dump() + ", as it was known before");
  }
  if (!begun.measured.is_object()) return;
  for (const auto& [name, value] : begun.measured.items()) {
    if (!value.is_object()) continue;
    const auto said = evaluation.measured.value(name, Json());
    // As texts too: those of numbers that are not finite are null.
    if (said == value || said.dump() == value.dump()) continue;
    must_be("measured." + name, said, shown(value) + ", as it was measured before");
  }
}

/// Values that the last point of the curve has, but for the last digits of another library.
void require_values_of_curve(const Evaluation& evaluation) {
  constexpr double kDigits = 1e-9;
  for (const auto& [name, value] : quality_values(evaluation.curve.back().valid, 0.0)) {
    const auto found = evaluation.values.find(name);
    if (found == evaluation.values.end() || !std::isfinite(value)) continue;
    if (std::abs(found->second - value) <= kDigits * std::abs(value)) continue;
    must_be("values." + name, number_json(found->second),
            number_json(value).dump() + ", as its curve has it");
  }
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
  // A value may be infinite: that is a divergence, which is told later (require_finite_values).
  if (!evaluation.values.contains("perplexity")) throw InputError("values.perplexity is missing");
  if (!evaluation.measured.contains("train_seconds")) {
    throw InputError("measured.train_seconds is missing");
  }
  require_values_of_curve(evaluation);
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
    whole_number_of(value, name + ".value", 1, kWidestOrder);
  } else if (!value.is_number()) {
    must_be(name + ".value", value, "a number");
  }
}

std::string name_of(const Task& task) {
  return beginning(task.candidate.name, kLongestName) + ", replicate " +
         std::to_string(task.replicate);
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
      auto evaluation = read_record(records[i], out.longest);
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
    auto evaluation = read_record(record, out.longest);
    const auto* asked = out.find(evaluation.id);
    if (asked != nullptr && is_result_of(evaluation, asked->task)) {
      about(asked->task, [&] { require_sound(*asked, evaluation, out.steps); });
    }
    evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
}

void read_results(const Json& line, const Outstanding& out, engine_line::Finished& said) {
  said.device = text_if_any(line, "device", kLongestName);
  if (line.contains("measure")) said.measure = text_in(line, "measure");
  const auto& records = field_of(line, "evaluations");
  if (!records.is_array()) must_be("evaluations", records, "a list");
  const auto order = out.orders.find(said.order);
  if (order == out.orders.end()) {
    // Nobody else has done an inspection of this number: what is lost is ordered under another one.
    if (said.measure.empty()) said.evaluations = read_late(records, out);
    return;
  }
  if (const auto& wanted = order->second.inspects; said.measure != wanted) {
    must_be("measure", said.measure, wanted.empty() ? "left out: its order is trained" : wanted);
  }
  said.evaluations = read_answer(order->second, records, out);
}

void read_advance(const Json& line, Advance& advance) {
  advance.step = whole_number_of(field_of(line, "step"), "step", 0, kLargestCount);
  if (const auto steps = line.value("steps", Json(0)); steps != 0) {
    advance.steps = whole_number_of(steps, "steps", advance.step, kLargestCount);
  }
  auto loss = line.value("loss", Json());
  if (loss.is_null()) loss = "nan";  // not known yet
  require_a_number(loss, "loss");
  advance.loss = read_number(loss);
}

/// Whom a line is of, where it is of a worker.
engine_line::Unsound source_of(const Json& line) {
  const auto worker = line.value("worker", Json());
  return {.order = whole_number_of(field_of(line, "order"), "order", 0, kLargestCount),
          .worker = worker.is_string() ? beginning(worker.get<std::string>(), kLongestName) : ""};
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

/// Reads what a worker says. @param read  called with whom it is of.
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

EngineLine read_finished(const Json& line, const Outstanding& out) {
  return of_worker(line, out, [&](const engine_line::Unsound& source) -> EngineLine {
    engine_line::Finished said{.order = source.order, .worker = source.worker};
    read_results(line, out, said);
    return said;
  });
}

EngineLine read_progress(const Json& line, const Outstanding& out) {
  return of_worker(line, out, [&](const engine_line::Unsound& source) -> EngineLine {
    engine_line::Progress said{.order = source.order, .advance = {.worker = source.worker}};
    if (out.orders.contains(said.order)) read_advance(line, said.advance);
    return said;
  });
}

EngineLine read_workers(const Json& line) {
  const auto count = whole_number_of(field_of(line, "count"), "count", 0, kMostWorkers);
  const auto slots = whole_number_of(line.value("slots", Json(count)), "slots", 0, kMostWorkers);
  return engine_line::Workers{
      {.workers = static_cast<int>(count), .slots = static_cast<int>(slots)}};
}

EngineLine read_loss(const Json& line) {
  const auto machine = line.value("machine", Json(false));
  if (!machine.is_boolean()) must_be("machine", machine, "true or false");
  return engine_line::Lost{
      .order = whole_number_of(field_of(line, "order"), "order", 0, kLargestCount),
      .reason = text_if_any(line, "reason", kLongestReason),
      .machine = machine.get<bool>()};
}

EngineLine read_line(const Json& line, const Outstanding& out) {
  if (!line.is_object()) throw InputError("must be an object");
  const auto kind = text_in(line, "kind");
  if (kind == "workers") return read_workers(line);
  if (kind == "progress") return read_progress(line, out);
  if (kind == "finished") return read_finished(line, out);
  if (kind == "lost") return read_loss(line);
  if (kind == "aside") {
    return engine_line::Aside{.worker = beginning(text_in(line, "worker"), kLongestName),
                              .reason = beginning(text_in(line, "reason"), kLongestReason)};
  }
  if (kind == "refused") {
    return engine_line::Refused{.reason = beginning(text_in(line, "reason"), kLongestReason)};
  }
  must_be("kind", kind, "workers, progress, finished, lost, aside or refused");
}

/// What a line that is nested too deeply says beside its lists and objects; nothing where that does
/// not say which worker it is of. A parser does not recurse, but what reads its result does.
std::optional<engine_line::Unsound> too_deep(const std::string& text, const std::string& why,
                                             const Outstanding& out) {
  const auto outline = Json::parse(
      text,
      [](int depth, Json::parse_event_t event, Json& /*parsed*/) {
        const bool begins =
            event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
        return !begins || depth == 0;
      },
      /*allow_exceptions=*/false);
  if (!outline.is_object()) return std::nullopt;
  const auto kind = outline.value("kind", Json());
  if (kind != "finished" && kind != "progress") return std::nullopt;
  return blamed(source_of(outline), why, out);
}

}  // namespace

Outstanding Outstanding::of(const Measurement& measurement) {
  const auto rungs = measurement.rungs();
  return {.steps = measurement.expensive() ? rungs : std::vector<std::int64_t>(),
          .longest = kLongestRecord + kLongestPoint * rungs.size()};
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
  require_kept(asked.begun, evaluation);
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
  Json line;
  try {
    line = parse_record(text);
  } catch (const InputError& error) {
    if (const auto found = too_deep(text, error.what(), out)) return *found;
    throw;
  }
  try {
    return read_line(line, out);
  } catch (const Json::exception& error) {
    throw InputError(error.what());
  }
}

}  // namespace nas
