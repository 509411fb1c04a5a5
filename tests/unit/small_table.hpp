#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/seed.hpp"
#include "store/store.hpp"
#include "unit/table_writer.hpp"

namespace nas::testing {

/// The functions of a small space under corrected semantics: 2 similarities x 2 normalizations x
/// 2 temperatures (of which relu_norm voids one) x bias.
inline std::vector<std::string> small_mechanisms() {
  std::vector<std::string> names;
  for (const std::string similarity : {"additive", "dot"}) {
    for (const std::string rest :
         {"relu_norm|none|fixed", "softmax|none|fixed", "softmax|none|learned"}) {
      for (const std::string bias : {"bias", "no_bias"}) {
        names.push_back(similarity + "|" + rest + "|" + bias + "|0");
      }
    }
  }
  return names;
}

inline nlohmann::json small_identity() {
  return {{"problem", "attention_search"},
          {"results_version", 3},
          {"semantics", "corrected"},
          {"model",
           {{"layers", 1},
            {"width", 16},
            {"heads", 2},
            {"context", 8},
            {"vocabulary", 50},
            {"feed_forward", 2},
            {"dropout", 0.1}}},
          {"corpus", "brown"},
          {"corpus_hash", "abc"},
          {"training", {{"steps", 40}, {"learning_rate", 3e-4}}},
          {"numerical_mode", "exact"},
          {"threads", 1},
          {"run_seed", 42}};
}

inline nlohmann::json small_facts() {
  return {{"corpus", "brown"},      {"vocabulary", 50}, {"unigram_perplexity", 40.0},
          {"bytes_per_token", 5.5}, {"context", 8},     {"device", "cpu"}};
}

/// A made-up training: worse with `additive`, better with `learned`, noise of the replicate. Of the
/// test split it has what was recorded before all sums were.
inline Evaluation small_evaluation(const std::string& mechanism, std::int64_t replicate) {
  Evaluation evaluation;
  evaluation.candidate = mechanism;
  evaluation.replicate = replicate;
  evaluation.identity = small_identity();
  evaluation.identity["candidate"] = mechanism;
  evaluation.identity["replicate"] = replicate;
  evaluation.id = sha256(evaluation.identity.dump());
  evaluation.status = Status::ok;
  const auto has = [&mechanism](const char* word) {
    return mechanism.find(word) != std::string::npos ? 1.0 : 0.0;
  };
  RandomEngine noise(derive_seed(1, replicate, "noise", mechanism));
  const double quality = 2.5 + 0.2 * has("additive") - 0.1 * has("learned") +
                         0.15 * has("relu_norm") + 0.02 * has("no_bias");
  for (const std::int64_t step : {10, 20, 40}) {
    CurvePoint point;
    point.step = step;
    point.train_nll = quality + noise.uniform() / 3.0;
    point.valid.tokens = 1000;
    point.valid.nll = 1000.0 * (quality + 8.0 / static_cast<double>(step) + 0.05 * noise.uniform());
    point.valid.correct = noise.below(1000);
    point.valid.unknown_nll = 30.0 * noise.uniform();
    point.valid.unknown_tokens = 10;
    point.valid.batch_mean_nll = point.valid.nll / 100.0;
    point.valid.batches = 10;
    point.seconds = static_cast<double>(step) * (1.0 + 0.1 * noise.uniform());
    evaluation.curve.push_back(point);
  }
  const auto& valid = evaluation.curve.back().valid;
  evaluation.values = {{"parameters", 1000.0 + 100.0 * has("additive")},
                       {"perplexity", valid.perplexity()},
                       {"test_nll", valid.nll / 1000.0 + 0.1},
                       {"test_tokens", 900.0},
                       {"test_perplexity", std::exp(valid.nll / 1000.0 + 0.1)}};
  evaluation.measured = {{"started", "2024-01-01T00:00:00Z"},
                         {"pid", 17},
                         {"train_seconds", evaluation.curve.back().seconds},
                         {"cpu_seconds", 0.75 * evaluation.curve.back().seconds},
                         {"peak_bytes", 1000000 + replicate},
                         {"latency",
                          {{"value", 1.0 + has("additive") + 0.1 * static_cast<double>(replicate)},
                           {"device", "cpu"}}}};
  return evaluation;
}

/// The same with all sums of the test split.
inline Evaluation fully_tested(Evaluation evaluation) {
  auto test = evaluation.curve.back().valid;
  test.nll += 100.0;
  test.correct = test.tokens - test.correct;
  test.batch_mean_nll += 2.0;
  test.unknown_nll = 0.0;
  test.unknown_tokens = 0;
  set_test_values(evaluation, test);
  return evaluation;
}

/// All cells of the small space, three replicates each.
inline std::vector<Evaluation> small_cells() {
  std::vector<Evaluation> cells;
  for (const auto& mechanism : small_mechanisms()) {
    for (std::int64_t replicate = 0; replicate < 3; ++replicate) {
      cells.push_back(small_evaluation(mechanism, replicate));
    }
  }
  return cells;
}

/// The same with five further replicates of the first mechanism, more than all have, and with two of the second.
inline std::vector<Evaluation> unequal_cells() {
  auto cells = small_cells();
  const auto names = small_mechanisms();
  for (std::int64_t i = 3; i < 8; ++i) cells.push_back(small_evaluation(names[0], i));
  for (std::int64_t i = 3; i < 5; ++i) cells.push_back(small_evaluation(names[1], i));
  return cells;
}

inline TableContent small_content(std::vector<Evaluation> cells = small_cells()) {
  return {.name = "small",
          .identity = small_identity(),
          .facts = small_facts(),
          .sources = nlohmann::json::array(),
          .cells = std::move(cells)};
}

/// A store as a finished run leaves it, with these evaluations.
inline void write_small_store(const std::filesystem::path& file,
                              const std::vector<Evaluation>& evaluations,
                              const nlohmann::json& facts = small_facts()) {
  Store store(file);
  store.set_meta("facts", facts);
  store.set_meta("ended_by", "the algorithm");
  store.add(evaluations);
}

/// Changes a table by SQL, as somebody else might: with a checksum that fits.
inline void change_table(const std::filesystem::path& file, const std::string& sql) {
  SQLite::Database sqlite(file.string(), SQLite::OPEN_READWRITE);
  sqlite.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
  sqlite.exec(sql);
  try {
    const auto sum = table_format::content_digest(
        [&sqlite](const auto& text) { return SQLite::Statement(sqlite, text); });
    sqlite.exec("UPDATE meta SET value = '\"" + sum + "\"' WHERE key = 'sha256'");
  } catch (const SQLite::Exception&) {  // a table or column of keys is gone
  }
}

}  // namespace nas::testing
