#pragma once

#include <initializer_list>

#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "report/digest.hpp"
#include "report/files.hpp"

namespace nas {

inline void expect_words(const std::string& text, const Texts& words) {
  for (const auto& some : words) EXPECT_THAT(text, HasSubstr(some));
}
inline void expect_no_words(const std::string& text, const Texts& words) {
  for (const auto& some : words) EXPECT_THAT(text, Not(HasSubstr(some)));
}
/// Lines of a table, each a regular expression.
inline void expect_rows(const std::string& text, const Texts& rows) {
  for (const auto& row : rows) EXPECT_THAT(text, ::testing::ContainsRegex(row));
}

/// What stands at some places of a digest: "/counts/asked".
using Values = std::initializer_list<std::pair<const char*, nlohmann::json>>;
inline void expect_values(const nlohmann::json& json, Values values) {
  for (const auto& [place, value] : values) {
    const nlohmann::json::json_pointer pointer(place);
    ASSERT_TRUE(json.contains(pointer)) << place;
    EXPECT_EQ(json.at(pointer), value) << place;
  }
}

inline nlohmann::json objective(const char* name, const char* unit, double best, double worst,
                                bool maximise = false) {
  return {{"name", name},         {"key", name},  {"unit", unit},
          {"maximise", maximise}, {"best", best}, {"worst", worst}};
}

/// A training run of five steps that took 2.5 s; diverged where it has no perplexity.
/// @param candidate  if it is not named by the id.
inline Evaluation evaluation(const std::string& id, double perplexity,
                             const std::string& candidate = "") {
  Evaluation made;
  made.id = id;
  made.candidate = candidate.empty() ? "candidate " + id : candidate;
  made.identity = {{"candidate", made.candidate}};
  made.measured = {{"train_seconds", 2.5}, {"pid", 1234}};
  if (perplexity == 0) {
    made.status = Status::diverged;
    made.reason = "not finite";
    return made;
  }
  made.status = Status::ok;
  CurvePoint point;
  point.step = 5;
  point.valid.tokens = 10;
  point.valid.nll = 10 * std::log(perplexity);
  point.valid.correct = 4;
  point.valid.batches = 1;
  point.valid.batch_mean_nll = std::log(perplexity);
  made.curve = {point};
  made.values = {{"perplexity", perplexity}, {"parameters", 1000.0}, {"flops", 2e6}};
  return made;
}

inline Ask ask(std::int64_t number, std::int64_t batch, const Texts& ids, double fitness,
               bool reused = false, const std::string& genotype = "") {
  return {.number = number,
          .batch = batch,
          .genotype = genotype.empty() ? "g" + ids.front() : genotype,
          .evaluations = ids,
          .reused = reused,
          .fitness = {fitness}};
}

/// A small made-up run: five asks in two generations, one of them reused, one failed, and a baseline outside the search.
class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fill(*store_,
         {evaluation("a", 90), evaluation("b", 80), evaluation("c", 0), evaluation("d", 85),
          evaluation("v", 100)},
         {ask(0, 0, {"a"}, 90), ask(1, 0, {"b"}, 80), ask(2, 1, {"a"}, 90, true),
          ask(3, 1, {"c"}, 1e9), ask(4, 1, {"d"}, 85)});
    store_->add_indicator({.asked = 2, .batch = 0, .evaluated = 2, .front = 1, .value = 80});
    store_->add_indicator({.asked = 5, .batch = 1, .evaluated = 4, .front = 1, .value = 80});
    store_->set_meta(
        "config",
        {{"name", "made up"},
         {"budget", {{"evaluations", 0}}},
         {"data",
          {{"corpus", "text_file"},
           {"path", "/some/where.txt"},
           {"train", "/some/other.txt"},
           {"seed_file", "/some/seed"},
           {"min_count", 2}}},
         {"evaluation", {{"workers", "2"}, {"array", "4"}, {"threads", 1}, {"repeated", "reuse"}}},
         {"training", {{"steps", 5}, {"checkpoint_minutes", 5}}}});
    store_->set_meta("schema", {{"objectives", {{"perplexity", {{"source", "trained"}}}}}});
    store_->set_meta("baseline", {{"evaluations", {"v"}}, {"fitness", {100.0}}});
    store_->set_meta("labels", {{"candidate b", "the <best>, \"b\""}});
  }

  /// Records a run whose only objective is perplexity.
  static void fill(Store& store, const std::vector<Evaluation>& evaluations,
                   const std::vector<Ask>& asks) {
    store.add(evaluations);
    store.add_asks(asks);
    store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
  }
  /// Another run than the made-up one.
  /// @param meta  further facts of it.
  RunSummary run_of(const std::vector<Evaluation>& evaluations, const std::vector<Ask>& asks,
                    const nlohmann::json& meta = nlohmann::json::object()) {
    Store store(folder_ / ("other" + std::to_string(others_++) + ".sqlite"));
    fill(store, evaluations, asks);
    for (const auto& [key, value] : meta.items()) store.set_meta(key, value);
    return RunSummary(store);
  }
  /// The made-up run with another fact.
  RunSummary run_with(const char* key, const nlohmann::json& value) {
    store_->set_meta(key, value);
    return RunSummary(*store_);
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  std::unique_ptr<Store> store_ = std::make_unique<Store>(folder_ / "store.sqlite");

 private:
  int others_ = 0;
};

}  // namespace nas
