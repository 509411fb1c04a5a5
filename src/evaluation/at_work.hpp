#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "evaluation/measurement.hpp"
#include "store/store.hpp"

namespace nas {

/// What an evaluator has been asked for and works on, kept in its store for displays: the
/// facts "asking" and "at_work", see docs/files.md. Results depend on neither. They are null once
/// this object is gone, and left as they were by a process that was killed.
///
/// A write is a commit of the thread that asks, which no training run waits for. Two per second are
/// enough for a reader: what changes more often than that is written with a later change.
class AtWork {
 public:
  /// @param stage  what the evaluations are for: "search", "re-test".
  AtWork(Store& store, std::string stage, int workers);
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

  /// So many arrays are measured at once from now on.
  void employ(int workers) { workers_ = workers; }
  /// A batch of asks is to be answered. @param asks  those that are not yet: list of records.
  void asked(std::int64_t batch, nlohmann::json asks);
  /// So many further evaluations are submitted.
  void submitted(std::size_t evaluations);
  /// Those that have not started will not be measured.
  void withdrawn() { waiting_ = 0; }
  /// Evaluations begin to be measured together.
  void started(const std::vector<const Evaluation*>& array);
  /// Those are so far now. An array that did not fit in memory goes on in parts.
  void advanced(const std::vector<const Evaluation*>& array, const Advance& advance);
  /// Some are measured, or will not be.
  void finished(const std::vector<Evaluation>& evaluations);

 private:
  /// Training runs that are made together.
  struct Array {
    std::vector<const Evaluation*> members;
    std::string started;
    Advance advance{};
    std::vector<std::pair<std::int64_t, double>> curve{};  ///< training loss by step
  };
  Array& array_of(const std::vector<const Evaluation*>& members);
  [[nodiscard]] nlohmann::json record() const;
  [[nodiscard]] bool may_write();
  void write();

  Store& store_;
  std::string stage_;
  int workers_;
  nlohmann::json asking_;
  bool asking_changed_ = false;
  std::int64_t waiting_ = 0;  ///< submitted, not started
  std::vector<Array> arrays_{};
  bool wrote_ = false;
  double allowed_ = 0.0;  ///< writes
  std::chrono::steady_clock::time_point looked_{};
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace nas
