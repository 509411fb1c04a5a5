#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/store.hpp"

namespace nas {

/// One candidate as a report shows it: the mean over its usable evaluations.
struct RankedCandidate {
  std::string candidate;        ///< canonical name
  std::string label;            ///< for people
  double value = 0.0;           ///< mean objective over the usable evaluations
  std::int64_t n = 0;           ///< their number
  std::int64_t first_ask = -1;  ///< ask at which it first came; -1: outside the search
  std::int64_t times_asked = 0;
  std::vector<const Evaluation*> evaluations;  ///< of RunSummary::evaluations
};

/// A batch of asks: a generation, for generational algorithms.
struct BatchSummary {
  std::int64_t batch = 0;
  std::int64_t asked = 0;
  std::int64_t failures = 0;
  double best = 0.0;  ///< of this batch; infinite if all failed
  double mean = 0.0;  ///< over its usable asks
  double best_so_far = 0.0;
};

/// A run, digested: what tables, files and pictures are made from. Move-only, since ranking points
/// into evaluations.
struct RunSummary {
  explicit RunSummary(const Store& store);
  RunSummary(RunSummary&&) = default;
  RunSummary(const RunSummary&) = delete;
  RunSummary& operator=(const RunSummary&) = delete;

  nlohmann::json config, facts, environment;
  std::string objective;  ///< the first one, after which candidates are ranked
  std::vector<Evaluation> evaluations;
  std::vector<Ask> asks;
  std::map<std::string, const Evaluation*> by_id;
  std::vector<RankedCandidate> ranking;     ///< usable ones asked by the search, best first
  std::optional<RankedCandidate> baseline;  ///< if it has a usable evaluation
  std::vector<const Evaluation*> failures;
  std::vector<BatchSummary> batches;
  double train_seconds = 0.0;  ///< over all evaluations
  std::int64_t reused = 0;     ///< asks answered by an earlier one

  [[nodiscard]] std::string label(const std::string& candidate) const;

 private:
  nlohmann::json labels_;
};

/// A measured number of an evaluation ("train_seconds"), 0 where there is none.
double measured_number(const Evaluation& evaluation, const char* name);

}  // namespace nas
