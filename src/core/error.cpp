#include "core/error.hpp"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/format.hpp"

namespace nas {

void require_in_range(std::string_view name, double value, double lo, double hi) {
  if (!(value >= lo && value <= hi)) {
    throw InputError(std::string(name) + " = " + shortest(value) + ", must be in [" + shortest(lo) +
                     ", " + shortest(hi) + "]");
  }
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

/// "lr" of "learning_rate".
std::string initials(std::string_view name) {
  std::string letters;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '_') letters += name[i];
  }
  return letters;
}

/// Whether what was given abbreviates a name, "random", "search" or "rs" for "random_search", or
/// goes on behind it.
bool belongs_to(std::string_view given, std::string_view name) {
  constexpr std::size_t kFewest = 3;
  const auto place = ("_" + std::string(name)).find("_" + std::string(given));
  const bool begins_a_word = given.size() >= kFewest && place != std::string::npos;
  const bool goes_on = name.size() >= kFewest && given.starts_with(name);
  return begins_a_word || goes_on || (given.size() > 1 && given == initials(name));
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::size_t allowed = std::max<std::size_t>(2, word.size() / 3);
  std::string best;
  std::size_t best_distance = std::string::npos;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && (distance <= allowed || belongs_to(word, candidate))) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty()) return {};
  const auto guess = nearest(word, candidates);
  return guess.empty() ? std::string() : "; did you mean " + guess + "?";
}

std::string known_text(std::string_view word, const std::vector<std::string>& known) {
  const auto guess = did_you_mean(word, known);
  return (guess.empty() ? ", known: " : guess + " Known: ") + join(known);
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

}  // namespace nas
