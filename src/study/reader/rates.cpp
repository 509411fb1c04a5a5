#include "study/reader/rates.hpp"

#include <algorithm>
#include <cmath>

#include "core/format.hpp"

namespace nas {

std::map<std::string, double> read_rates(
    const DocumentNode& list,
    const std::function<std::optional<std::string>(const std::string&, const Origin&)>& mechanism,
    Diagnostics& diagnostics) {
  std::map<std::string, double> rates;
  for (const auto& item : list.as_list()) {
    const auto blank = std::min(item.text.rfind(' '), item.text.size());
    const auto given = item.text.substr(0, blank);
    const auto rate = number_in(item.text.substr(std::min(blank + 1, item.text.size())));
    const auto refuse = [&](const std::string& why) {
      diagnostics.add(item.origin, "rates = " + item.text + ", " + why);
    };
    if (!rate || !std::isfinite(*rate) || *rate <= 0.0) {
      refuse("must be a name and a number > 0");
      continue;
    }
    const bool known = given == "baseline" || given == "no mixer" || given.starts_with("window ");
    const auto name = known ? given : mechanism(given, item.origin);
    if (name && !rates.emplace(*name, *rate).second) refuse("is given twice");
  }
  return rates;
}

}  // namespace nas
