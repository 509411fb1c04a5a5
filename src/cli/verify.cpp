#include "cli/verify.hpp"

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "evaluation/kept_model.hpp"
#include "report/text.hpp"
#include "store/store.hpp"
#include "table/named.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

/// Whether the algorithm of a run hears of answers as they arrive, an order that no command makes again.
bool hears_by_arrival(const Store& store) {
  const auto config = store.meta("config").value_or(nullptr);
  const nlohmann::json::json_pointer order("/algorithm/order");
  return config.is_object() && config.contains(order) && config.at(order) == "arrival";
}

/// Checks the record. @return whether nothing is damaged any longer.
bool verify_store(const fs::path& file, bool remove, std::ostream& out) {
  Store store(file, remove ? Store::Mode::write : Store::Mode::read_only);
  const auto found = store.check(remove);
  out << file.string() << ": " << counted(found.verified, "record")
      << " as written, by their SHA-256\n";
  if (!found.inconsistencies.empty()) out << "damaged file: " << found.inconsistencies;
  for (const auto& damage : found.damaged) out << printable(damage) << '\n';
  if (!found.inconsistencies.empty()) return false;
  if (found.damaged.empty()) return true;
  if (!remove) {
    out << "put a copy of the file in its place, or remove "
        << counted(std::ssize(found.damaged), "damaged record")
        << " with --remove, after which the command of the run makes them again\n";
    return false;
  }
  const auto left = store.check().damaged;
  out << "removed; the command of the run makes again what was damaged";
  if (hears_by_arrival(store)) {
    out << "; from there on its search may ask for others than before, since answers were told "
           "as they arrived (algorithm.order = arrival)";
  }
  out << '\n';
  for (const auto& damage : left) out << "could not be removed: " << printable(damage) << '\n';
  return left.empty();
}

/// Whether a file is named as weights that a run has kept: ID.pt.
bool is_kept_model(const fs::path& file) {
  constexpr std::size_t kDigits = 64;
  const auto id = file.stem().string();
  return file.extension() == ".pt" && id.size() == kDigits &&
         id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// @param evaluations  of the run.
/// @return whether there is a digest of kept weights, which is theirs then.
/// @throws InputError naming the file, where they are damaged, or of no training run of these.
bool has_right_digest(const fs::path& weights, const std::vector<Evaluation>& evaluations) {
  const auto evaluation =
      std::find_if(evaluations.begin(), evaluations.end(),
                   [&](const auto& one) { return one.id == weights.stem().string(); });
  if (evaluation == evaluations.end()) {
    throw InputError(weights.string() + ": is of no training run that is recorded");
  }
  const auto digest = kept_digest(weights, *evaluation);
  if (const auto found = sha256_file(weights); !digest.empty() && found != digest) {
    throw InputError(weights.string() + ": its SHA-256 is " + found + ", must be " + digest);
  }
  return !digest.empty();
}

/// Checks the weights in models/ beside a store. @return whether none is damaged any longer.
bool verify_models(const fs::path& file, bool remove, std::ostream& out) {
  const auto folder = file.parent_path() / "models";
  if (!fs::is_directory(folder)) return true;
  const auto evaluations = Store(file, Store::Mode::read_only).evaluations();
  std::vector<fs::path> damaged;
  std::int64_t verified = 0;
  std::int64_t unverified = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!is_kept_model(entry.path())) continue;
    try {
      ++(has_right_digest(entry.path(), evaluations) ? verified : unverified);
    } catch (const InputError& error) {
      out << "damaged weights: " << printable(error.what()) << '\n';
      damaged.push_back(entry.path());
    }
  }
  out << folder.string() << ": " << counted(verified, "kept model")
      << " as written, by their SHA-256";
  if (unverified > 0)
    out << "; " << counted(unverified, "kept model") << " without one, not checked";
  out << '\n';
  if (damaged.empty()) return true;
  if (!remove) {
    out << "put copies of the files in their places, or remove them with --remove, after which "
           "nas-export and nas-analyse train such a model again\n";
    return false;
  }
  for (auto weights : damaged) {
    remove_file(weights);
    remove_file(weights.replace_extension(".json"));
  }
  out << "removed; nas-export and nas-analyse train such a model again\n";
  return true;
}

}  // namespace

bool verify_run(const fs::path& run, bool remove, std::ostream& out) {
  const auto file = store_named(run);
  return verify_store(file, remove, out) && verify_models(file, remove, out);
}

}  // namespace nas
