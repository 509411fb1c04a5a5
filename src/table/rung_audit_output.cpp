#include <cmath>
#include <sstream>

#include "core/format.hpp"
#include "table/rung_audit.hpp"

namespace nas {

namespace {

/// NaN and infinity have no JSON.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json pruned(const RungAudit::Pruned& pruned) {
  return {{"count", pruned.count}, {"of", pruned.of}};
}

nlohmann::json estimated(const Estimate& estimate) {
  return {{"mean", number(estimate.mean)}, {"standard_error", number(estimate.standard_error)}};
}

}  // namespace

void to_json(nlohmann::json& json, const RungAudit& audit) {
  json = {{"table", audit.table},
          {"mechanisms", audit.mechanisms},
          {"replicates", audit.replicates},
          {"rungs", audit.options.rungs},
          {"eta", audit.eta},
          {"objectives", audit.options.objectives},
          {"promote", audit.options.spread == Spread::crowding ? "crowding" : "epsilon_net"},
          {"searches", audit.options.searches},
          {"agreement", nlohmann::json::array()},
          {"between_seeds", nlohmann::json::array()},
          {"replayed", nlohmann::json::array()},
          {"first_trusted_step", nullptr},
          {"verdict", audit.verdict()}};
  if (audit.first_trusted_step) json["first_trusted_step"] = *audit.first_trusted_step;
  for (const auto& rung : audit.agreement) {
    json["agreement"].push_back({{"objective", rung.objective},
                                 {"step", rung.step},
                                 {"correlation", number(rung.correlation)},
                                 {"low", number(rung.low)},
                                 {"high", number(rung.high)},
                                 {"overlap", number(rung.overlap)},
                                 {"noise", number(rung.noise)}});
  }
  for (const auto& seeds : audit.between_seeds) {
    json["between_seeds"].push_back({{"objective", seeds.objective},
                                     {"correlation", number(seeds.correlation)},
                                     {"overlap", number(seeds.overlap)}});
  }
  for (const auto& one : audit.replayed) {
    json["replayed"].push_back({{"method", one.method},
                                {"budget", one.budget},
                                {"started", one.started},
                                {"finished", one.finished},
                                {"saved", one.saved},
                                {"top_3", pruned(one.top_3)},
                                {"top_16", pruned(one.top_16)},
                                {"front", pruned(one.front)},
                                {"regret", estimated(one.regret)},
                                {"fresh_regret", estimated(one.fresh_regret)}});
  }
}

std::string csv(const RungAudit& audit) {
  std::ostringstream text;
  text << "part,of,at,quantity,value\n";
  const auto line = [&text](const std::string& part, const std::string& of, std::int64_t at,
                            const char* quantity, double value) {
    text << part << ',' << of << ',' << at << ',' << quantity << ','
         << (std::isnan(value) ? "" : shortest(value)) << '\n';
  };
  for (const auto& rung : audit.agreement) {
    line("agreement", rung.objective, rung.step, "correlation", rung.correlation);
    line("agreement", rung.objective, rung.step, "low", rung.low);
    line("agreement", rung.objective, rung.step, "high", rung.high);
    line("agreement", rung.objective, rung.step, "overlap", rung.overlap);
    line("agreement", rung.objective, rung.step, "noise", rung.noise);
  }
  for (const auto& seeds : audit.between_seeds) {
    line("between_seeds", seeds.objective, audit.options.rungs.back(), "correlation",
         seeds.correlation);
    line("between_seeds", seeds.objective, audit.options.rungs.back(), "overlap", seeds.overlap);
  }
  for (const auto& one : audit.replayed) {
    const auto add = [&](const char* quantity, double value) {
      line("replayed", one.method, one.budget, quantity, value);
    };
    add("started", one.started);
    add("finished", one.finished);
    add("saved", one.saved);
    add("pruned_top_3", one.top_3.share());
    add("pruned_top_16", one.top_16.share());
    add("pruned_front", one.front.share());
    add("regret", one.regret.mean);
    add("regret_standard_error", one.regret.standard_error);
    add("fresh_regret", one.fresh_regret.mean);
    add("fresh_regret_standard_error", one.fresh_regret.standard_error);
  }
  return text.str();
}

}  // namespace nas
