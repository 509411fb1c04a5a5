#include "report/retest_table.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/format.hpp"
#include "report/columns.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

/// "71.20 (70.10 to 72.30)", or the mean alone where it has no error or nothing is known of that.
std::string estimate_text(const nlohmann::json& estimate) {
  if (!estimate.at("mean").is_number()) return {};
  const auto mean = number_text(estimate.at("mean"));
  if (!estimate.at("low").is_number() || estimate.at("low") == estimate.at("high")) return mean;
  return mean + " (" + number_text(estimate.at("low")) + " to " + number_text(estimate.at("high")) +
         ")";
}

/// A difference of nll as one of perplexities: "-3.1 % (-5.0 to -1.2)".
std::string difference_text(const nlohmann::json& contrast) {
  if (contrast.is_null()) return {};
  const auto percent = [](double nll) {
    return (nll > 0.0 ? "+" : "") + fixed_text(100.0 * std::expm1(nll), 1);
  };
  auto text = percent(contrast.at("difference")) + " %";
  if (contrast.at("low").is_number()) {
    text += " (" + percent(contrast.at("low")) + " to " + percent(contrast.at("high")) + ")";
  }
  return text;
}

std::string p_text(const nlohmann::json& contrast) {
  if (contrast.is_null()) return {};
  const auto p = contrast.at("p_holm").get<double>();
  return p < 0.001 ? "< 0.001" : fixed_text(p, 3);
}

/// A column of what one of the re-tested candidates has.
template <class Cell>
Column column(const nlohmann::json& candidates, std::string header, Cell cell) {
  Column made{.header = std::move(header)};
  for (const auto& candidate : candidates) made.cells.push_back(cell(candidate));
  return made;
}

void add_contrast_columns(const nlohmann::json& candidates, const char* field,
                          const std::string& header, std::vector<Column>& columns) {
  const auto contrast = [field](const nlohmann::json& candidate) {
    return candidate.value(field, nlohmann::json());
  };
  columns.push_back(column(candidates, header, [&](const auto& candidate) {
    return difference_text(contrast(candidate));
  }));
  columns.push_back(
      column(candidates, "p", [&](const auto& candidate) { return p_text(contrast(candidate)); }));
}

std::string table_of(const RunSummary& run, std::size_t width) {
  const auto& candidates = run.retest.at("candidates");
  const auto objective =
      std::find_if(run.objectives.begin(), run.objectives.end(),
                   [&run](const auto& one) { return run.retest.at("objective") == one.name; });
  const auto index = static_cast<std::size_t>(objective - run.objectives.begin());
  std::vector<Column> columns;
  columns.push_back(
      column(candidates, "", [](const auto& candidate) { return candidate.at("role"); }));
  columns.push_back(
      column(candidates, "mechanism", [](const auto& candidate) { return candidate.at("label"); }));
  columns.back().left = true;
  columns.push_back(column(candidates, "in the search", [&](const auto& candidate) {
    const auto& search = candidate.at("search");
    return index < search.size() ? number_text(objective->natural(search[index])) : std::string();
  }));
  columns.back().spare = true;
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    if (i != index && !run.listed()) continue;  // the tables of a search have the others
    columns.push_back(column(candidates, run.objectives[i].title(), [i](const auto& candidate) {
      return estimate_text(candidate.at("retest").at(i));
    }));
  }
  columns.push_back(column(candidates, "test perplexity", [](const auto& candidate) {
    return estimate_text(candidate.at("test"));
  }));
  const auto wanted = run.retest.at("replicates").get<std::int64_t>();
  columns.push_back(column(candidates, "n", [index, wanted](const auto& candidate) {
    const auto n = candidate.at("retest").at(index).at("n").template get<std::int64_t>();
    return used_text(n, wanted);
  }));
  columns.back().spare = true;
  add_contrast_columns(candidates, "against_baseline", "to baseline", columns);
  add_contrast_columns(candidates, "against_tuned_baseline", "to tuned baseline", columns);
  columns.push_back(column(candidates, run.several() ? "P(front)" : "P(best)",
                           [](const auto& candidate) -> std::string {
                             const auto& p = candidate.at("non_dominated_probability");
                             return p.is_number() ? fixed_text(p, 2) : std::string();
                           }));
  return aligned(std::move(columns), width);
}

/// Differences from the baseline by each objective that training determines, where there are any.
std::string differences_table(const RunSummary& run, std::size_t width) {
  nlohmann::json compared;  // the candidates that have one
  for (const auto& candidate : run.retest.at("candidates")) {
    const auto& all = candidate.at("differences");
    const bool any =
        std::any_of(all.begin(), all.end(), [](const auto& d) { return !d.is_null(); });
    if (any) compared.push_back(candidate);
  }
  if (compared.is_null()) return {};
  std::vector<Column> columns{
      column(compared, "mechanism", [](const auto& candidate) { return candidate.at("label"); })};
  columns.back().left = true;
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    const auto add = [&](const std::string& header, const auto& text) {
      columns.push_back(column(compared, header, [i, &text](const auto& candidate) {
        const auto& difference = candidate.at("differences").at(i);
        return difference.is_null() ? std::string() : text(difference);
      }));
    };
    add(run.objectives[i].title(), [](const nlohmann::json& difference) {
      const bool more = difference.at("difference") > 0.0;
      auto estimate = difference;
      estimate["mean"] = difference.at("difference");
      return (more ? "+" : "") + estimate_text(estimate);
    });
    add("p", p_text);
    add("n", [](const nlohmann::json& difference) { return difference.at("n").dump(); });
  }
  return wrapped(
             "\ndifferences from the baseline on the validation split, t-tests of pairs of equal "
             "seeds, p by Holm over the mechanisms of each objective\n",
             width) +
         aligned(std::move(columns), width);
}

std::string tuning_text(const RunSummary& run) {
  std::ostringstream text;
  text << "\ntuned by the validation split\n";
  for (const auto& mechanism : run.tuning) {
    const auto& trials = mechanism.at("trials");
    text << "  " << mechanism.at("label").get<std::string>() << ": ";
    if (mechanism.at("best").is_null()) {
      text << "none of " << trials.size() << " trials could be trained\n";
      continue;
    }
    const auto& best = trials.at(mechanism.at("best").get<std::size_t>());
    text << "learning rate " << shortest(best.at("learning_rate")) << ", weight decay "
         << shortest(best.at("weight_decay")) << ", the best of " << trials.size() << " trials ("
         << number_text(best.at("value")) << ", the configuration's own "
         << (trials.at(0).at("value").is_number() ? number_text(trials.at(0).at("value"))
                                                  : "failed")
         << ")\n";
  }
  return text.str();
}

}  // namespace

std::string retest_table(const RunSummary& run, std::size_t width) {
  std::ostringstream text;
  if (!run.tuning.is_null()) text << wrapped(tuning_text(run), width);
  if (run.retest.is_null()) return text.str();
  const auto replicates = run.retest.at("replicates").get<std::int64_t>();
  std::ostringstream head;
  head << (run.listed() ? "\ntrained on " : "\nre-test on ") << counted(replicates, "fresh seed");
  if (replicates > 1) {
    head << "; " << shortest(100.0 * run.retest.at("confidence").get<double>())
         << " % intervals, each for itself; differences in test perplexity, paired by seed, p by "
            "Holm over all of them; "
         << (run.several() ? "P(front)" : "P(best)") << " by validation values";
  }
  head << '\n';
  text << wrapped(head.str(), width) << table_of(run, width);
  if (run.listed()) text << differences_table(run, width);
  const auto verdict = run.retest.at("verdict").get<std::string>();
  if (!verdict.empty()) text << '\n' << wrapped(verdict, std::min(kLineWidth, width));
  return text.str();
}

}  // namespace nas
