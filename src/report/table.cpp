#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "core/format.hpp"
#include "report/columns.hpp"
#include "report/files.hpp"
#include "report/json_number.hpp"
#include "report/recorded_genes.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

constexpr std::size_t kBestShown = 10;
constexpr std::size_t kFrontShown = 20;

/// A candidate's row: the name that stands before it, and the candidate.
using Rows = std::vector<std::pair<std::string, const RankedCandidate*>>;

Column column(const Rows& rows, std::string header,
              const std::function<std::string(const RankedCandidate&)>& cell) {
  Column made{.header = std::move(header)};
  for (const auto& [name, candidate] : rows) made.cells.push_back(cell(*candidate));
  return made;
}

std::vector<Column> name_columns(const Rows& rows, const RunSummary& run) {
  Column names{.header = ""};
  for (const auto& [name, candidate] : rows) names.cells.push_back(name);
  // Of a point of many numbers the first ones tell it from others; results.json has all.
  constexpr std::size_t kLongestPoint = 60;
  const auto* header = run.facts.contains("command") ? "candidate" : "mechanism";
  auto mechanisms = column(rows, header, [&run](const RankedCandidate& candidate) {
    const auto label = short_label(run, candidate.candidate);
    const bool point = label.find_first_not_of("0123456789.e+-|") == std::string::npos;
    return point ? shortened(label, kLongestPoint) : label;
  });
  mechanisms.left = true;
  mechanisms.name = true;
  return {std::move(names), std::move(mechanisms)};
}

/// An objective's means, and their standard errors where any of them has one that is not 0.
void add_objective(std::vector<Column>& columns, const Rows& rows, const RunSummary& run,
                   std::size_t objective) {
  columns.push_back(column(rows, run.objectives[objective].title(),
                           [objective](const RankedCandidate& candidate) {
                             return number_text(candidate.values[objective]);
                           }));
  columns.push_back(column(rows, "s.e.", [objective](const RankedCandidate& candidate) {
    const auto error = candidate.standard_errors[objective].value_or(0.0);
    return error == 0.0 ? std::string() : number_text(error);
  }));
}

Column replicates_column(const Rows& rows) {
  return column(rows, "n", [](const RankedCandidate& candidate) {
    return used_text(candidate.n, candidate.wanted);
  });
}

/// "stopped at step 20" beside those that were stopped early.
std::string stop_mark(const RankedCandidate& candidate) {
  return candidate.stopped_at ? "stopped at step " + std::to_string(*candidate.stopped_at)
                              : std::string();
}

Column ask_column(const Rows& rows) {
  return column(rows, "ask", [](const RankedCandidate& candidate) {
    return candidate.first_ask < 0 ? std::string() : std::to_string(candidate.first_ask + 1);
  });
}

Column baseline_column(const Rows& rows, const RunSummary& run) {
  return column(rows, "to baseline", [&run](const RankedCandidate& candidate) -> std::string {
    if (!run.baseline || run.baseline->candidate == candidate.candidate) return {};
    if (candidate.stopped_at) return {};  // its value is that of an earlier step
    const double before = run.baseline->values.front();
    const double percent = 100.0 * (candidate.values.front() - before) / std::abs(before);
    if (!std::isfinite(percent)) return {};
    return (percent > 0 ? "+" : "") + fixed_text(percent, 1) + " %";
  });
}

/// The same, where a table can do without it.
Column spare(Column column) {
  column.spare = true;
  return column;
}

/// Accuracies in percent, a mean over the usable evaluations, and their standard errors.
void add_accuracy(std::vector<Column>& columns, const Rows& rows) {
  const auto accuracy = [](const RankedCandidate& candidate) {
    return candidate.mean([](const Evaluation& evaluation) -> std::optional<double> {
      if (evaluation.curve.empty() || evaluation.curve.back().valid.tokens == 0)
        return std::nullopt;
      return 100.0 * evaluation.curve.back().valid.accuracy();
    });
  };
  columns.push_back(spare(column(rows, "accuracy", [accuracy](const RankedCandidate& candidate) {
    const auto percent = accuracy(candidate);
    return percent ? fixed_text(percent->mean, 1) + " %" : std::string();
  })));
  columns.push_back(spare(column(rows, "s.e.", [accuracy](const RankedCandidate& candidate) {
    const auto percent = accuracy(candidate);
    const bool known = percent && percent->n > 1;
    return known ? fixed_text(percent->standard_error, 1) : std::string();
  })));
}

Column number_column(const Rows& rows, const char* header, const char* name) {
  return column(rows, header, [name](const RankedCandidate& candidate) -> std::string {
    const auto* evaluation = candidate.usable_evaluation();
    const auto value = evaluation != nullptr ? computed_value(*evaluation, name) : std::nullopt;
    return value ? human_count(*value) : std::string();
  });
}

Column seconds_column(const Rows& rows) {
  return column(rows, "trained", [](const RankedCandidate& candidate) -> std::string {
    double seconds = 0.0;
    for (const auto* evaluation : candidate.evaluations) {
      seconds += measured_number(*evaluation, "train_seconds");
    }
    return seconds == 0.0 ? std::string() : fixed_text(seconds, 1) + " s";
  });
}

/// What candidates are compared with: the baseline and its controls.
void add_references(Rows& rows, const RunSummary& run) {
  if (run.baseline) rows.emplace_back("baseline", &*run.baseline);
  for (const auto& [name, measured] : run.controls) rows.emplace_back(name, &measured);
}

std::string best_table(const RunSummary& run, std::size_t width) {
  Rows rows;
  for (std::size_t i = 0; i < std::min(kBestShown, run.ranking.size()); ++i) {
    rows.emplace_back(std::to_string(i + 1), &run.ranking[i]);
  }
  add_references(rows, run);
  if (rows.empty()) return {};
  auto columns = name_columns(rows, run);
  add_objective(columns, rows, run, 0);
  columns.push_back(baseline_column(rows, run));
  columns.push_back(replicates_column(rows));
  const auto& key = run.objectives.front().key;
  if (key != "accuracy") add_accuracy(columns, rows);
  if (key != "parameters") columns.push_back(spare(number_column(rows, "params", "parameters")));
  if (key != "flops") columns.push_back(spare(number_column(rows, "FLOPs", "flops")));
  columns.push_back(spare(seconds_column(rows)));
  columns.push_back(ask_column(rows));
  columns.push_back(column(rows, "", stop_mark));
  columns.back().left = true;
  return aligned(std::move(columns), width);
}

/// Of a long front as many members as a table has room for, evenly along it, ends and knee among
/// them.
std::vector<std::size_t> shown_members(const RunSummary& run) {
  const auto size = run.front.size();
  if (size <= kFrontShown) return run.front;
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < kFrontShown; ++i) {
    shown.push_back(run.front[i * (size - 1) / (kFrontShown - 1)]);
  }
  if (run.knee && std::find(shown.begin(), shown.end(), *run.knee) == shown.end()) {
    const auto after = std::upper_bound(shown.begin(), shown.end(), *run.knee);
    *(after == std::prev(shown.end()) ? std::prev(after) : after) = *run.knee;
  }
  return shown;
}

std::string front_table(const RunSummary& run, std::size_t width) {
  const auto shown = shown_members(run);
  Rows rows;
  Column marks{.header = "", .left = true};
  for (const auto i : shown) {
    rows.emplace_back(std::to_string(i + 1), &run.ranking[i]);
    marks.cells.push_back(run.knee == i ? "knee" : stop_mark(run.ranking[i]));
  }
  add_references(rows, run);
  marks.cells.resize(rows.size());
  std::ostringstream text;
  text << "non-dominated front, " << run.front.size() << " of " << run.ranking.size()
       << " candidates";
  if (shown.size() < run.front.size()) {
    text << "; " << shown.size() << " of them, evenly along the front, and "
         << run.front.size() - shown.size() << " more in results.json";
  }
  text << '\n';
  if (rows.empty()) return text.str();
  auto columns = name_columns(rows, run);
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    add_objective(columns, rows, run, i);
  }
  columns.push_back(replicates_column(rows));
  columns.push_back(ask_column(rows));
  columns.push_back(std::move(marks));
  return text.str() + aligned(std::move(columns), width);
}

std::string hypervolume_text(const RunSummary& run) {
  if (run.indicators.empty()) return {};
  std::vector<std::string> ranges;
  std::string beyond;
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    const auto& objective = run.objectives[i];
    ranges.push_back(objective.name + " " + number_text(objective.best) + " to " +
                     number_text(objective.worst));
    const bool all_beyond = std::all_of(
        run.ranking.begin(), run.ranking.end(),
        [&](const auto& candidate) { return objective.scaled(candidate.fitness[i]) > 1.0; });
    if (run.ranking.empty() || !all_beyond) continue;
    beyond += "every value of " + objective.name +
              " is worse than its range, so that the hypervolume stays near 0 whatever is found: "
              "give the objective a wider range than [" +
              number_text(objective.best) + ", " + number_text(objective.worst) + "]\n";
  }
  std::ostringstream text;
  text << "\nhypervolume " << number_text(run.indicators.back().value) << "; reference point "
       << shortest(kReferencePoint) << " everywhere, 0 to 1 being " << ranges.front();
  for (std::size_t i = 1; i < ranges.size(); ++i) text << ", " << ranges[i];
  text << '\n' << beyond;
  return text.str();
}

/// How steady the machine was while latencies were measured: the same computation, timed beside
/// each of them.
std::string canary_text(const RunSummary& run) {
  std::string text;
  for (const auto& objective : run.objectives) {
    double low = std::numeric_limits<double>::infinity();
    double high = 0.0;
    for (const auto& evaluation : run.evaluations) {
      const auto found = evaluation.measured.find(objective.name);
      if (found == evaluation.measured.end() || !found->is_object()) continue;
      const double p50 = number_at(*found, "canary_p50").value_or(0.0);
      if (p50 <= 0.0) continue;
      low = std::min(low, p50);
      high = std::max(high, p50);
    }
    if (high == 0.0) continue;
    text += "latency canary" + (run.objectives.size() > 1 ? " of " + objective.name : "") +
            ": p50 between " + number_text(low) + " and " + number_text(high) + " ms (drift x" +
            fixed_text(high / low, 2) + ")\n";
  }
  return text;
}

std::string failures_text(const std::vector<const Evaluation*>& failures) {
  std::map<std::string, std::pair<int, std::string>> by_status;
  for (const auto* evaluation : failures) {
    auto& [count, reason] = by_status[std::string(to_string(evaluation->status))];
    if (count++ == 0) reason = evaluation->reason;
  }
  std::string text;
  for (const auto& [status, entry] : by_status) {
    text += "  " + std::to_string(entry.first) + " " + status + ", e.g.: " + entry.second + "\n";
  }
  return text;
}

/// The candidates that constraints rejected, by when they did.
std::string rejections_text(const std::vector<RejectedCandidate>& rejected) {
  std::string text;
  for (const bool trained : {false, true}) {
    const auto is_so = [trained](const auto& one) { return one.trained == trained; };
    const auto count = std::count_if(rejected.begin(), rejected.end(), is_so);
    if (count == 0) continue;
    text += "  " + std::to_string(count) + (trained ? " after" : " before") +
            " training, e.g.: " + std::find_if(rejected.begin(), rejected.end(), is_so)->reason +
            "\n";
  }
  return text;
}

/// "4 evaluated, 3 rejected by constraints"
std::string evaluated_text(const Effort& effort) {
  auto text = std::to_string(effort.evaluations) + " evaluated";
  if (effort.rejected > 0)
    text += ", " + std::to_string(effort.rejected) + " rejected by constraints";
  return text;
}

/// "1 failure, 2 stopped early; 10 s of training"
std::string effort_text(const Effort& effort) {
  auto text = counted(std::ssize(effort.failures), "failure");
  if (effort.stopped_early > 0) {
    text += ", " + std::to_string(effort.stopped_early) + " stopped early";
  }
  const bool trained = effort.train_seconds > 0.0;
  if (trained) text += "; " + human_duration(effort.train_seconds) + " of training";
  return text;
}

/// What was evaluated for the search's sake, but not by it.
std::string outside_text(const RunSummary& run) {
  if (run.outside.evaluations + run.outside.rejected == 0) return {};
  std::string stages = "baseline";
  if (!run.controls.empty()) stages += ", controls";
  if (!run.retest.is_null()) stages += ", re-test";
  if (run.ended_by.ends_with(" of training")) stages += ", what time left unanswered";
  return "outside the search (" + stages + "): " + evaluated_text(run.outside) + ", " +
         effort_text(run.outside) + "\n";
}

/// "rungs: 40 came to step 50, 13 of them went on; 13 to step 150, 4 went on; 27 are paused"
std::string rungs_text(const RunSummary& run) {
  if (run.rungs.empty()) return {};
  std::string text = "rungs: ";
  for (const auto& rung : run.rungs) {
    text += std::to_string(rung.reached) + " came to step " + std::to_string(rung.step) + ", " +
            std::to_string(rung.went_on) + " went on; ";
  }
  return text + std::to_string(run.paused.size()) + " are paused\n";
}

/// How mechanisms are named where their names are long.
std::string long_names_text(const RunSummary& run) {
  if (!run.baseline || run.ranking.empty() || !has_long_names(run)) return {};
  const std::string baseline(run.baseline->label);
  if (!names_layers(gene_names(run))) {
    return "\nmechanisms are named by the searched genes that differ from the baseline " +
           baseline + "\n";
  }
  const auto frame = frame_text(baseline);
  return frame.empty() ? std::string()
                       : "\nmechanisms are named without the frame " +
                             std::string(frame.substr(0, frame.size() - 1)) + "\n";
}

/// What counts of the training tokens reach.
std::string counts_text(const RunSummary& run) {
  const auto best = best_counts(run);
  if (!best) return {};
  return "counts of " + human_count(static_cast<double>(best->tokens)) +
         " of the baseline's training tokens, with as much history: " + to_string(measure_of(run)) +
         ' ' + number_text(best->value) + " (order " + std::to_string(best->order) + ")\n";
}

/// What has to be known before anything is concluded from the tables.
std::string warning_text(const RunSummary& run, std::size_t width) {
  std::string text;
  for (const auto& warning : warnings(run)) {
    text += '\n' + wrapped(warning, std::min(kLineWidth, width));
  }
  return text;
}

/// What the numbers of training runs can and cannot say.
std::string replicates_text(const RunSummary& run) {
  if (run.answered_by_means()) {
    return "\nn = 1: the mean over all trainings of a mechanism that the table holds, at least " +
           std::to_string(run.facts.at("table").at("replicates").get<std::int64_t>()) +
           ". Only one is charged.\n";
  }
  const auto [fewest, most] =
      std::minmax_element(run.ranking.begin(), run.ranking.end(),
                          [](const auto& a, const auto& b) { return a.n < b.n; });
  std::string text;
  if (most->n > 1) {
    text += "\nValues are means over n trainings, s.e. their standard errors.\n";
  }
  if (fewest->n == 1 && run.retest.is_null()) {
    text +=
        "\nn = 1: one training each, hence no standard error. Differences below the noise between "
        "seeds mean nothing, and the best of many single trainings looks better than it is.\n";
  }
  if (std::any_of(run.ranking.begin(), run.ranking.end(),
                  [](const auto& candidate) { return candidate.n < candidate.wanted; })) {
    text += "\nn = 2/3: of 3 trainings 2 are used, since the others failed.\n";
  }
  if (std::any_of(run.ranking.begin(), run.ranking.end(),
                  [](const auto& candidate) { return candidate.stopped_at.has_value(); })) {
    text +=
        "\nStopped early: the value is that of the step at which the training was stopped, which "
        "compares with no other and is never the best; of several trainings, their mean.\n";
  }
  return text;
}

/// "71.20 (70.10 to 72.30)", or the mean alone where it has no error or nothing is known of that.
std::string estimate_text(const nlohmann::json& estimate) {
  if (!estimate.at("mean").is_number()) return {};
  const auto mean = number_text(estimate.at("mean"));
  if (!estimate.at("low").is_number() || estimate.at("low") == estimate.at("high")) return mean;
  return mean + " (" + number_text(estimate.at("low")) + " to " + number_text(estimate.at("high")) +
         ")";
}

/// A difference of perplexities, "-3.1 % (-5.0 to -1.2)", or of accuracies in points, "+2.0 (1.0 to
/// 3.0)": less errors are more right answers.
std::string difference_text(Measure measure, const nlohmann::json& contrast) {
  if (contrast.is_null()) return {};
  const bool accuracy = measure == Measure::accuracy;
  const auto number = [&](double difference) {
    const double given = shown_difference(measure, difference);
    const double shown = accuracy ? 0.0 - given : given;  // no difference has no sign
    return (shown > 0.0 ? "+" : "") + fixed_text(shown, 1);
  };
  auto text = number(contrast.at("difference")) + (accuracy ? "" : " %");
  if (contrast.at("low").is_number()) {
    auto [low, high] = std::pair(number(contrast.at("low")), number(contrast.at("high")));
    if (accuracy) std::swap(low, high);
    text += " (" + low + " to " + high + ")";
  }
  return text;
}

std::string corrected_p_text(const nlohmann::json& contrast) {
  if (contrast.is_null()) return {};
  const auto p = contrast.at("p_holm").get<double>();
  return p < 0.001 ? "< 0.001" : fixed_text(p, 3);
}

/// "16 of 20 (0.56 to 0.94)": runs that solve the task, where that is known.
std::string solved_text(const nlohmann::json& candidate) {
  const auto solved = candidate.value("solved", nlohmann::json());
  if (!solved.is_object()) return {};
  return solved.at("count").dump() + " of " + solved.at("of").dump() + " (" +
         fixed_text(solved.at("low"), 2) + " to " + fixed_text(solved.at("high"), 2) + ")";
}

/// Whether any of the runs that are compared fails: else a median over the others says nothing new.
bool some_fail(const nlohmann::json& candidates) {
  return std::any_of(candidates.begin(), candidates.end(), [](const auto& candidate) {
    const auto solved = candidate.value("solved", nlohmann::json());
    return candidate.at("role") != "control" && solved.is_object() &&
           solved.at("count") < solved.at("of");
  });
}

/// A learning rate of its own, "0.016 (end)" where it is an end of those that were tried.
std::string rate_text(const nlohmann::json& candidate) {
  const auto rate = number_at(candidate, "learning_rate");
  if (!rate) return {};
  return shortest(*rate) + (candidate.value("rate_at_end", false) ? " (end)" : "");
}

/// A column of what one of the re-tested candidates has.
template <class Cell>
Column retest_column(const nlohmann::json& candidates, std::string header, Cell cell) {
  Column made{.header = std::move(header)};
  for (const auto& candidate : candidates) made.cells.push_back(cell(candidate));
  return made;
}

std::string table_of(const RunSummary& run, std::size_t width) {
  const auto& candidates = run.retest.at("candidates");
  const auto measure = measure_of(run.retest);
  const auto objective =
      std::find_if(run.objectives.begin(), run.objectives.end(),
                   [&run](const auto& one) { return run.retest.at("objective") == one.name; });
  const auto index = static_cast<std::size_t>(objective - run.objectives.begin());
  std::vector<Column> columns;
  columns.push_back(
      retest_column(candidates, "", [](const auto& candidate) { return candidate.at("role"); }));
  columns.back().spare = true;
  columns.push_back(retest_column(candidates, "mechanism",
                                  [](const auto& candidate) { return candidate.at("label"); }));
  columns.back().left = true;
  columns.back().name = true;
  columns.push_back(retest_column(candidates, "in the search", [&](const auto& candidate) {
    const auto& search = candidate.at("search");
    return index < search.size() ? number_text(objective->natural(search[index])) : std::string();
  }));
  columns.back().spare = true;
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    if (i != index && !run.listed()) continue;  // the tables of a search have the others
    columns.push_back(retest_column(
        candidates, run.objectives[i].title(),
        [i](const auto& candidate) { return estimate_text(candidate.at("retest").at(i)); }));
  }
  columns.push_back(retest_column(candidates, title(measure), [](const auto& candidate) {
    return estimate_text(candidate.at("test"));
  }));
  columns.push_back(retest_column(candidates, "solved", solved_text));
  if (some_fail(candidates)) {
    columns.push_back(retest_column(candidates, "median of solved", [](const auto& candidate) {
      const auto median = number_at(candidate.at("solved"), "median");
      return median ? number_text(*median) : std::string();
    }));
    columns.back().spare = true;
  }
  columns.push_back(retest_column(candidates, "n", [index](const auto& candidate) {
    const auto wanted = std::ssize(candidate.at("evaluations"));
    const auto n = candidate.at("retest").at(index).at("n").template get<std::int64_t>();
    return used_text(n, wanted);
  }));
  columns.back().spare = true;
  columns.push_back(retest_column(candidates, "rate", rate_text));
  const std::string points = measure == Measure::accuracy ? ", points" : "";
  columns.push_back(
      retest_column(candidates, "to baseline" + points, [measure](const auto& candidate) {
        return difference_text(measure, candidate.at("against_baseline"));
      }));
  columns.push_back(retest_column(candidates, "p", [](const auto& candidate) {
    return corrected_p_text(candidate.at("against_baseline"));
  }));
  columns.push_back(retest_column(candidates, run.several() ? "P(front)" : "P(best)",
                                  [](const auto& candidate) -> std::string {
                                    const auto& p = candidate.at("non_dominated_probability");
                                    return p.is_number() ? fixed_text(p, 2) : std::string();
                                  }));
  columns.back().spare = true;
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
  std::vector<Column> columns{retest_column(
      compared, "mechanism", [](const auto& candidate) { return candidate.at("label"); })};
  columns.back().left = true;
  columns.back().name = true;
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    const auto add = [&](const std::string& header, const auto& text) {
      columns.push_back(retest_column(compared, header, [i, &text](const auto& candidate) {
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
    add("p", corrected_p_text);
    add("n", [](const nlohmann::json& difference) { return difference.at("n").dump(); });
  }
  return wrapped(std::string("\ndifferences from the baseline on the validation split, ") +
                     (run.retest.contains("until") ? "" : "t-tests of ") +
                     "pairs of equal seeds, p by Holm over the mechanisms of each objective\n",
                 width) +
         aligned(std::move(columns), width);
}

/// What it takes to decide about listed mechanisms that are undecided: of a given number of seeds to add
/// them until it is done, else how many more.
std::string deciding_text(const RunSummary& run) {
  const auto is_open = [&run](const nlohmann::json& candidate) {
    const auto& contrast = candidate.at("against_baseline");
    return candidate.at("role") == "listed" && contrast.is_object() &&
           contrast.at("p_holm").get<double>() > 1.0 - run.retest.at("confidence").get<double>();
  };
  const auto& candidates = run.retest.at("candidates");
  if (!run.retest.contains("until")) {
    if (!std::any_of(candidates.begin(), candidates.end(), is_open)) return {};
    return "\nThe same with --until 3% adds seeds until each is decided, and to none more than it "
           "takes\n";
  }
  const auto seeds = run.retest.value("seeds_needed", std::int64_t{0});
  if (seeds == 0 || run.outside.evaluations == 0) return {};
  std::int64_t trainings = 0;
  for (const auto& candidate : candidates) {
    const auto& role = candidate.at("role");
    if (role != "listed" && role != "baseline") continue;
    const auto& contrast = candidate.at("against_baseline");
    const bool decided =
        contrast.is_object() &&
        std::ssize(candidate.at("evaluations")) < run.retest.at("replicates").get<std::int64_t>();
    if (!decided) trainings += seeds - std::ssize(candidate.at("evaluations"));
  }
  const double each = run.outside.train_seconds / static_cast<double>(run.outside.evaluations);
  return "\nThe same with --seeds " + std::to_string(seeds) +
         " would decide: " + counted(trainings, "more training run") + ", " +
         human_duration(each * static_cast<double>(trainings)) + " of training\n";
}

/// What came after the search: the re-tested candidates with what the search had seen beside what
/// fresh seeds say, and the verdict. Empty where there was nothing.
std::string retest_table(const RunSummary& run, std::size_t width) {
  if (run.retest.is_null()) return {};
  std::ostringstream text;
  const auto replicates = run.retest.at("replicates").get<std::int64_t>();
  std::ostringstream head;
  const bool voided = run.retest.value("voided", false);
  const auto until = voided ? 0.0 : run.retest.value("until", 0.0);
  head << (voided         ? "\nbaseline and controls alone trained on "
           : run.listed() ? "\ntrained on "
                          : "\nre-test on ")
       << (until > 0.0 ? "at most " : "") << counted(replicates, "fresh seed")
       << (run.retest.value("at_one_rate", false) ? " at one learning rate" : "");
  if (until > 0.0) {
    head << ", until each was decided to " << shortest(100.0 * until)
         << (measure_of(run.retest) == Measure::accuracy ? " points" : " %");
  }
  const auto& candidates = run.retest.at("candidates");
  const auto any_has = [&candidates](const char* key) {
    return std::any_of(candidates.begin(), candidates.end(),
                       [key](const auto& one) { return one.contains(key) && !one[key].is_null(); });
  };
  const bool shares = any_has("solved");
  if (replicates > 1) {
    head << "; " << shortest(100.0 * run.retest.at("confidence").get<double>()) << " % intervals"
         << (shares ? ", failures included" : "") << ", each for itself; differences in "
         << title(measure_of(run.retest)) << ", paired by seed, p by Holm over all of them"
         << (until > 0.0 ? "; those of differences hold at any number of seeds, but for controls"
                         : "");
    if (any_has("non_dominated_probability"))
      head << "; " << (run.several() ? "P(front)" : "P(best)") << " by validation values";
  }
  if (shares) head << "; solved: runs, and the Clopper-Pearson interval of their share";
  if (any_has("learning_rate"))
    head << "; rate: learning rate, (end) the lowest or the highest that was tried";
  head << '\n';
  text << wrapped(head.str(), width) << table_of(run, width);
  if (run.listed()) text << differences_table(run, width);
  const auto verdict = run.retest.at("verdict").get<std::string>();
  if (!verdict.empty()) text << '\n' << wrapped(verdict, std::min(kLineWidth, width));
  if (run.listed()) text << wrapped(deciding_text(run), width);
  return text.str();
}

}  // namespace

std::string closing_table(const RunSummary& run, std::size_t width) {
  std::ostringstream head;
  std::ostringstream tail;
  std::string table;
  std::string notes;
  if (run.listed()) {
    head << evaluated_text(run.outside) << ", " << effort_text(run.outside) << '\n'
         << counts_text(run) << canary_text(run);
    if (!run.outside.failures.empty())
      head << "\nfailures\n" << failures_text(run.outside.failures);
  } else {
    head << run.num_asked() << " candidates asked for, " << evaluated_text(run.search) << ", "
         << run.reused << " answered by an earlier evaluation, " << effort_text(run.search) << '\n';
    head << rungs_text(run) << outside_text(run);
    if (!run.ended_by.empty()) head << "ended by: " << run.ended_by << '\n';
    head << '\n';
    table = run.several() ? front_table(run, width) : best_table(run, width);
    if (run.several()) tail << hypervolume_text(run);
    tail << long_names_text(run) << '\n' << counts_text(run) << canary_text(run);
    if (!run.rejected.empty()) {
      tail << "\nrejected by constraints\n" << rejections_text(run.rejected);
    }
    if (!run.search.failures.empty()) tail << "\nfailures\n" << failures_text(run.search.failures);
    if (!run.outside.failures.empty()) {
      tail << "\nfailures outside the search\n" << failures_text(run.outside.failures);
    }
    if (run.search.train_seconds > 0.0 && !run.ranking.empty()) notes = replicates_text(run);
  }
  return wrapped(head.str(), width) + table + wrapped(tail.str(), width) +
         wrapped(notes, std::min(kLineWidth, width)) + retest_table(run, width) +
         warning_text(run, width);
}

}  // namespace nas
