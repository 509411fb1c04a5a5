#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/in_flight.hpp"
#include "evaluation/measurement.hpp"

namespace nas {

/// How processes have ended at evaluations of a run: what is measured leaves a mark while it is at
/// work (InFlight), and what has ended a process too often is a failure.
class Endings {
 public:
  /// @param folder         of the run, which holds kEndingsFile; empty: nothing is marked.
  /// @param time_limit     of a training run, in seconds; 0: none.
  /// @param retry_crashed  how many endings of an evaluation are forgiven.
  Endings(std::filesystem::path folder, double time_limit, std::int64_t retry_crashed);

  /// Marks what is at work, while the result lives; what takes more than twice the time limits of
  /// all of them, and 30 s to build them, is overdue.
  [[nodiscard]] std::unique_ptr<InFlight> mark(std::span<const Assignment> array) const;
  /// What may have ended a process that other things were at work in shows it where none is.
  /// @throws MeasureAlone.
  void require_alone(std::span<const Assignment> array) const;
  /// Takes what was at work when a process ended out of its group: it is alone the next time.
  /// @param groups  see Measurement::alike, and how they are returned.
  [[nodiscard]] std::vector<std::vector<std::size_t>> apart(
      std::vector<std::vector<std::size_t>> groups, std::span<const Assignment> tasks) const;
  /// Makes Status::crashed or timed_out of what has ended more processes than are forgiven.
  /// @return whether it is that.
  bool decide(Evaluation& evaluation) const;

 private:
  [[nodiscard]] std::vector<std::string> of(const std::string& id) const;

  std::filesystem::path folder_;
  double time_limit_;
  std::int64_t retry_crashed_;
};

}  // namespace nas
