#include "core/numerical_mode.hpp"

#include <array>
#include <string>

#include "core/error.hpp"

namespace nas {

namespace {

constexpr std::array kModes{NumericalMode::reference, NumericalMode::exact, NumericalMode::tf32,
                            NumericalMode::fast};

}  // namespace

std::string_view to_string(NumericalMode mode) {
  switch (mode) {
    case NumericalMode::reference:
      return "reference";
    case NumericalMode::exact:
      return "exact";
    case NumericalMode::tf32:
      return "tf32";
    case NumericalMode::fast:
      return "fast";
  }
  return "";
}

NumericalMode parse_numerical_mode(std::string_view text) {
  for (const auto mode : kModes) {
    if (text == to_string(mode)) return mode;
  }
  throw InputError("numerical mode = " + std::string(text) +
                   ", must be reference, exact, tf32 or fast");
}

}  // namespace nas
