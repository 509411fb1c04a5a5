#include "cli/verify.hpp"

#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/words.hpp"
#include "core/format.hpp"
#include "report/text.hpp"
#include "store/store.hpp"

namespace nas {

namespace {

/// Whether the algorithm of a run hears of answers as they arrive, an order that no command makes again.
bool hears_by_arrival(const Store& store) {
  const auto config = store.meta("config").value_or(nullptr);
  const nlohmann::json::json_pointer order("/algorithm/order");
  return config.is_object() && config.contains(order) && config.at(order) == "arrival";
}

}  // namespace

bool verify_run(const std::filesystem::path& run, bool remove, std::ostream& out) {
  const auto file = store_named(run);
  Store store(file, remove ? Store::Mode::write : Store::Mode::read_only);
  const auto found = store.check(remove);
  out << file.string() << ": " << counted(found.verified, "record")
      << " as written, by their SHA-256";
  if (found.unverified > 0) {
    out << "; " << counted(found.unverified, "record") << " readable, written before there was one";
  }
  out << '\n';
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

}  // namespace nas
