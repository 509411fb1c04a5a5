#pragma once

#include <optional>
#include <string>

#include "core/error.hpp"
#include "store/database.hpp"
#include "store/rows.hpp"

namespace nas {

/// Rows of asks beside the evaluations that answered them. A genotype that is the name of the first
/// one's candidate is not written again: its column is empty.
class AskRows {
 public:
  explicit AskRows(const Database& database) : database_(database) {}

  /// Reads one whose evaluations must be recorded, or parts of them.
  /// @throws InputError naming an evaluation that is not there.
  Ask operator()(const Texts& columns) {
    auto ask = read(columns);
    if (const auto* missing = missing_of(ask)) {
      throw InputError("the evaluation " + *missing + " that answered it is not there");
    }
    return ask;
  }

  /// Reads one; without its evaluation an empty genotype stays so.
  Ask read(const Texts& columns) {
    auto ask = read_ask(columns);
    if (ask.genotype.empty()) ask.genotype = candidate_of(ask.evaluations.front()).value_or("");
    return ask;
  }

  /// The columns of one. Within the transaction that writes them.
  Texts columns(Ask ask) {
    if (candidate_of(ask.evaluations.front()) == ask.genotype) ask.genotype.clear();
    return ask_columns(ask);
  }

  /// The first evaluation of an ask that is not there; null: all are.
  [[nodiscard]] const std::string* missing_of(const Ask& ask) {
    for (const auto& id : ask.evaluations) {
      if (!candidate_of(id)) return &id;
    }
    return nullptr;
  }

 private:
  /// What was evaluated; nothing where the evaluation is not there.
  std::optional<std::string> candidate_of(const std::string& id) {
    if (!find_) {  // not before a row of an ask is being read: so that both see the same commits
      std::string sql = "SELECT candidate FROM evaluations WHERE id = ?1";
      if (database_.has_table(kPartials.name)) {
        sql += " UNION ALL SELECT candidate FROM partials WHERE id = ?1";
      }
      find_.emplace(database_.statement(sql));
    }
    find_->bind(1, id);
    std::optional<std::string> found;
    if (find_->executeStep()) found = find_->getColumn(0).getString();
    find_->reset();
    return found;
  }

  const Database& database_;
  std::optional<SQLite::Statement> find_{};
};

}  // namespace nas
