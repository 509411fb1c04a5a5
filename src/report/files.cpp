#include "report/files.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

namespace {

using Row = std::vector<std::string>;

/// Characters that a UTF-8 text takes on a terminal (no wide ones occur).
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

/// Columns as wide as their widest cell; the second is left-aligned, the others right.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::ostringstream text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      text << "  " << (i == 1 ? row[i] + blanks : blanks + row[i]);
    }
    text << '\n';
  }
  return text.str();
}

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string value_text(double value) {
  return std::abs(value) < 1e5 ? fixed(value, 2) : human_count(value);
}

Row table_row(const std::string& rank, const RankedCandidate& candidate, const RunSummary& run) {
  const Evaluation& first = *candidate.evaluations.front();
  double seconds = 0.0;
  for (const auto* evaluation : candidate.evaluations) {
    seconds += measured_number(*evaluation, "train_seconds");
  }
  std::string difference = "-";
  if (run.baseline && run.baseline->candidate != candidate.candidate) {
    const double percent = 100.0 * (candidate.value / run.baseline->value - 1.0);
    difference = (percent > 0 ? "+" : "") + fixed(percent, 1) + " %";
  }
  const auto number = [&first](const char* name) {
    const auto found = first.values.find(name);
    return found == first.values.end() ? std::string("-") : human_count(found->second);
  };
  return {rank,
          candidate.label,
          value_text(candidate.value),
          difference,
          std::to_string(candidate.n),
          fixed(100.0 * first.curve.back().valid.accuracy(), 1) + " %",
          number("parameters"),
          number("flops"),
          fixed(seconds, 1) + " s",
          candidate.first_ask < 0 ? "-" : std::to_string(candidate.first_ask + 1)};
}

std::string failures_text(const RunSummary& run) {
  std::map<std::string, std::pair<int, std::string>> by_status;
  for (const auto* evaluation : run.failures) {
    auto& [count, reason] = by_status[std::string(to_string(evaluation->status))];
    if (count++ == 0) reason = evaluation->reason;
  }
  std::string text;
  for (const auto& [status, entry] : by_status) {
    text += "  " + std::to_string(entry.first) + " " + status + ", e.g.: " + entry.second + "\n";
  }
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

nlohmann::json candidate_json(const RankedCandidate& candidate) {
  nlohmann::json ids = nlohmann::json::array();
  for (const auto* evaluation : candidate.evaluations) ids.push_back(evaluation->id);
  return {{"mechanism", candidate.label},
          {"candidate", candidate.candidate},
          {"value", candidate.value},
          {"n", candidate.n},
          {"first_ask", candidate.first_ask},
          {"times_asked", candidate.times_asked},
          {"values", candidate.evaluations.front()->values},
          {"evaluations", ids}};
}

}  // namespace

std::string closing_table(const RunSummary& run, std::size_t count) {
  std::ostringstream text;
  text << run.asks.size() << " candidates asked for, "
       << run.asks.size() - static_cast<std::size_t>(run.reused) << " evaluated, " << run.reused
       << " answered by an earlier evaluation, " << run.failures.size() << " failures; "
       << human_duration(run.train_seconds) << " of training\n\n";
  std::vector<Row> rows{{"", "mechanism", run.objective, "to baseline", "n", "accuracy", "params",
                         "FLOPs", "trained", "ask"}};
  for (std::size_t i = 0; i < std::min(count, run.ranking.size()); ++i) {
    rows.push_back(table_row(std::to_string(i + 1), run.ranking[i], run));
  }
  if (run.baseline) rows.push_back(table_row("baseline", *run.baseline, run));
  text << aligned(rows);
  if (!run.failures.empty()) text << "\nfailures\n" << failures_text(run);
  if (!run.ranking.empty() && run.ranking.front().n == 1) {
    text << "\nn = 1: one training each. Differences below the noise between seeds mean nothing, "
            "and the best of\n"
            "many single trainings looks better than it is.\n";
  }
  return text.str();
}

nlohmann::json results_json(const RunSummary& run) {
  nlohmann::json ranking = nlohmann::json::array();
  for (const auto& candidate : run.ranking) ranking.push_back(candidate_json(candidate));
  nlohmann::json batches = nlohmann::json::array();
  const auto finite = [](double value) -> nlohmann::json {
    if (!std::isfinite(value)) return nullptr;
    return value;
  };
  for (const auto& batch : run.batches) {
    batches.push_back({{"batch", batch.batch},
                       {"asked", batch.asked},
                       {"failures", batch.failures},
                       {"best", finite(batch.best)},
                       {"mean", batch.asked > batch.failures ? finite(batch.mean) : nullptr},
                       {"best_so_far", finite(batch.best_so_far)}});
  }
  nlohmann::json failures = nlohmann::json::array();
  for (const auto* evaluation : run.failures) {
    failures.push_back({{"mechanism", run.label(evaluation->candidate)},
                        {"status", to_string(evaluation->status)},
                        {"reason", evaluation->reason},
                        {"evaluation", evaluation->id}});
  }
  return {{"schema", 1},
          {"objective", run.objective},
          {"counts",
           {{"asked", run.asks.size()},
            {"evaluated", run.asks.size() - static_cast<std::size_t>(run.reused)},
            {"reused", run.reused},
            {"failures", run.failures.size()}}},
          {"train_seconds", run.train_seconds},
          {"baseline", run.baseline ? candidate_json(*run.baseline) : nlohmann::json()},
          {"ranking", ranking},
          {"batches", batches},
          {"failures", failures},
          {"config", run.config},
          {"facts", run.facts},
          {"environment", run.environment}};
}

std::string evaluations_csv(const RunSummary& run) {
  static const Row kGenes{"similarity",  "normalization", "gating",
                          "temperature", "bias",          "attention_dropout"};
  std::map<std::string, std::pair<std::string, std::string>>
      asks;  // numbers and first batch, by evaluation
  for (const auto& ask : run.asks) {
    auto& [numbers, batch] = asks[ask.evaluation];
    numbers += (numbers.empty() ? "" : " ") + std::to_string(ask.number + 1);
    if (batch.empty()) batch = std::to_string(ask.batch);
  }
  Row header{"mechanism", "candidate"};
  header.insert(header.end(), kGenes.begin(), kGenes.end());
  for (const auto* name : {"replicate", "asks", "batch", "status", "reason", "perplexity",
                           "published_perplexity", "nll", "tokens", "accuracy", "parameters",
                           "flops", "steps", "train_seconds", "peak_bytes", "id"}) {
    header.emplace_back(name);
  }
  std::ostringstream text;
  const auto line = [&text](const Row& row) {
    std::vector<std::string> fields;
    for (const auto& field : row) fields.push_back(csv_field(field));
    text << join(fields, ",") << "\r\n";
  };
  line(header);
  for (const auto& evaluation : run.evaluations) {
    Row row{run.label(evaluation.candidate), evaluation.candidate};
    std::istringstream genes(evaluation.candidate);
    for (std::size_t i = 0; i < kGenes.size(); ++i) {
      std::string gene;
      std::getline(genes, gene, '|');
      row.push_back(gene);
    }
    const auto& [numbers, batch] = asks[evaluation.id];
    row.insert(row.end(), {std::to_string(evaluation.replicate), numbers, batch,
                           std::string(to_string(evaluation.status)), evaluation.reason});
    if (is_usable(evaluation) && !evaluation.curve.empty()) {
      const auto& valid = evaluation.curve.back().valid;
      row.insert(row.end(),
                 {shortest(valid.perplexity()), shortest(valid.published_perplexity()),
                  shortest(valid.nll), std::to_string(valid.tokens), shortest(valid.accuracy())});
    } else {
      row.insert(row.end(), 5, "");
    }
    for (const auto* name : {"parameters", "flops"}) {
      const auto found = evaluation.values.find(name);
      row.push_back(found == evaluation.values.end() ? "" : shortest(found->second));
    }
    row.push_back(evaluation.curve.empty() ? "0" : std::to_string(evaluation.curve.back().step));
    row.push_back(shortest(measured_number(evaluation, "train_seconds")));
    row.push_back(shortest(measured_number(evaluation, "peak_bytes")));
    row.push_back(evaluation.id);
    line(row);
  }
  return text.str();
}

std::string canonical_export(const RunSummary& run) {
  std::ostringstream text;
  // What differing_keys() allows to change between two sessions of one run is no part of the
  // comparable form.
  auto config = run.config;
  config.erase("name");
  for (const auto* key : {"workers", "device", "keep_models"}) config["evaluation"].erase(key);
  config["training"].erase("checkpoint_minutes");
  text << nlohmann::json{{"config", config}}.dump() << '\n';
  for (const auto& ask : run.asks) {
    text << nlohmann::json{{"ask", ask.number},        {"batch", ask.batch},
                           {"genotype", ask.genotype}, {"evaluation", ask.evaluation},
                           {"reused", ask.reused},     {"fitness", ask.fitness}}
                .dump()
         << '\n';
  }
  for (const auto& evaluation : run.evaluations) text << canonical_json(evaluation).dump() << '\n';
  return text.str();
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = file.string() + ".tmp";
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream << text;
    if (!stream.flush()) throw InputError(file.string() + ": cannot be written");
  }
  std::filesystem::rename(temporary, file);
}

}  // namespace nas
