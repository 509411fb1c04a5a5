#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "evaluation/measurement.hpp"
#include "evaluation/workforce.hpp"

namespace nas {

/// How a worker is asked for Measurement::array_width(), in place of an objective.
inline constexpr const char* kArrayWidth = "array_width";

/// A task that an engine was given, and what has come of it.
struct OrderedTask {
  Task task;
  Evaluation begun;  ///< with all that was known beforehand
  std::optional<Evaluation> result{};
  int losses = 0;  ///< deaths of workers
  int faults = 0;  ///< of machines
};

/// What an engine is to have measured together.
struct EngineOrder {
  std::vector<OrderedTask> members;
  std::int64_t priority = 0;
  bool started = false;
  std::string inspects{};  ///< what is measured before the training; empty: it is trained
};

/// What the lines of an engine may answer.
struct Outstanding {
  std::map<std::int64_t, EngineOrder> orders{};  ///< that are out, by number
  std::map<std::string, std::int64_t>
      number_of{};  ///< of a task's order, by id; not of inspections
  /// Validation steps of a training run, ascending; empty: a usable result is that of none.
  std::vector<std::int64_t> steps{};

  /// Nothing is out yet. @param measurement  of whose tasks the orders will be.
  static Outstanding of(const Measurement& measurement);
  /// The task of an id that is to be trained; null where none is out.
  [[nodiscard]] const OrderedTask* find(const std::string& id) const;
  [[nodiscard]] OrderedTask* find(const std::string& id);
};

/// Refuses what cannot be the result of a task, whatever was measured: of another task or identity;
/// usable without the curve, values (`perplexity` where points have scores) and the seconds that every
/// training run has, points that are no validation steps, or ended before the last one; paused where it was to go on,
/// or too soon.
/// @param steps  as in Outstanding.
/// @throws InputError "status = "paused", must be ..."
void require_sound(const OrderedTask& asked, const Evaluation& evaluation,
                   const std::vector<std::int64_t>& steps);

/// Of these, what is paused where its task was to go on, without a curve, or too soon.
/// @throws InputError "status = "paused", must be ..."
void require_wanted_pause(const Task& task, const Evaluation& evaluation);

/// Whether an evaluation says what a task asks for. A training run that goes on from rung to rung
/// has one id, and what it was paused at earlier may come twice.
bool is_result_of(const Evaluation& evaluation, const Task& task);

/// What a line says. Texts are UTF-8; long ones are cut.
namespace engine_line {

struct Workers {
  Workforce now;
};
struct Progress {
  std::int64_t order = 0;
  Advance advance{};  ///< of an order that is out
};
/// What an order has come to. Of one that is out: an evaluation of each of its tasks, all of them
/// sound. Of another one, which was given up or withdrawn: what is_result_of() a task that is
/// out is sound.
struct Finished {
  std::int64_t order = 0;
  std::string worker{};
  std::string device{};
  std::string measure{};  ///< what was measured before the training; empty: it was trained
  std::vector<Evaluation> evaluations{};
};
/// What a worker says of an order and cannot be true.
struct Unsound {
  std::int64_t order = 0;
  std::string worker{};
  std::string why{};  ///< with the evaluation's candidate and replicate, where it is about one
};
struct Lost {
  std::int64_t order = 0;
  std::string reason{};
  bool machine = false;
};
struct Aside {
  std::string worker{};
  std::string reason{};
};
struct Refused {
  std::string reason{};
};

}  // namespace engine_line

using EngineLine =
    std::variant<engine_line::Workers, engine_line::Progress, engine_line::Finished,
                 engine_line::Unsound, engine_line::Lost, engine_line::Aside, engine_line::Refused>;

/// Reads a line of an engine (docs/how-to/cluster.md), believing nothing of it.
/// @throws InputError where it is no line of the protocol, which is the engine's fault: what is
/// wrong with a result or with how far it is, is the worker's (Unsound).
EngineLine read_engine_line(const std::string& text, const Outstanding& out);

}  // namespace nas
