#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "search/promotion.hpp"
#include "statistics/statistics.hpp"
#include "table/table.hpp"

namespace nas {

/// What would be lost if training runs were pruned at rungs, by replaying a table in which all of
/// them were trained to the end.
struct RungAudit {
  struct Options {
    std::vector<std::int64_t> rungs;  ///< steps of the table's curves, ascending; the last one
                                      ///< is the end
    std::optional<double> eta{};      ///< of every rung; else the next rung's steps by its own
    std::vector<std::string> objectives{"perplexity"};  ///< keys
    std::int64_t searches = 1000;
    Spread spread = Spread::crowding;
  };

  /// How a rung ranks the mechanisms by an objective, against their order at the end with the same
  /// seeds: means over the replicates.
  struct Agreement {
    std::string objective;
    std::int64_t step = 0;
    double correlation = 0.0;  ///< Spearman's
    /// Its 95 % interval over mechanisms, of one replicate: no wider for the mean of several.
    double low = 0.0, high = 0.0;
    /// Share of the best 16 at the end, in the order of promotion by all objectives, that are the
    /// best 16 here.
    double overlap = 0.0;
    /// Of a difference of two mechanisms at this step that comes from the seeds: the spread of the
    /// differences between two replicates (1.48 times the median distance from their median, over
    /// all mechanisms and pairs of replicates), in the objective's unit; NaN of one replicate.
    double noise = 0.0;
  };
  /// Of how many started candidates how many did not come to the end, over all searches.
  struct Pruned {
    std::int64_t count = 0, of = 0;
    [[nodiscard]] double share() const;  ///< NaN of none
  };
  /// Searches that have paid for as many steps as `budget` whole training runs. Each asks for the
  /// mechanisms in a random order, the same for every method, and sees one replicate of all.
  struct Replayed {
    std::string method;  ///< "full length", "successive halving", "asha"
    std::int64_t budget = 0;
    double started = 0.0, finished = 0.0;  ///< mean numbers of candidates
    double saved = 0.0;                    ///< share of the steps that the started would have taken
    Pruned top_3{}, top_16{}, front{};     ///< of all mechanisms, by the same replicate
    /// Of what a search returns. One objective: its value beyond the least of all; several: the
    /// share of the front's hypervolume that is missing, objectives scaled to the front's range and
    /// the reference a tenth beyond it. NaN where a search finished nothing.
    Estimate regret{};
    Estimate
        fresh_regret{};  ///< the same by the means over the other replicates; NaN where none is
  };

  std::string table;
  std::int64_t mechanisms = 0, replicates = 0;
  Options options;
  std::vector<double> eta;           ///< of each rung but the last
  std::vector<Agreement> agreement;  ///< by step and objective, of those that training decides
  /// The same between the ends with different seeds, over all pairs of replicates; NaN for a table
  /// of one replicate.
  std::vector<Agreement> between_seeds;
  std::vector<Replayed> replayed;

  /// The first step of the curves at which as many of the best 16 are found as two seeds have in
  /// common at the end; nothing if only the end is, or the table has one replicate.
  std::optional<std::int64_t> first_trusted_step{};

  /// In words: whether the first rung is too early, that is before `first_trusted_step`, and what
  /// pruning costs and gains.
  [[nodiscard]] std::string verdict() const;
};

/// Replays successive halving (one bracket, as large as the budget allows) and ASHA (one training
/// run at a time) with random proposals, and full length beside them. Deterministic.
/// Cost: about searches x (candidates started)^2 comparisons.
/// @throws InputError naming the option, what was given and what is allowed; a cell that is missing;
/// StopRequested.
RungAudit audit_rungs(const Table& table, const RungAudit::Options& options);

void to_json(nlohmann::json& json, const RungAudit& audit);
/// Columns part, of, at, quantity, value: one number a line, empty where there is none.
std::string csv(const RungAudit& audit);

}  // namespace nas
