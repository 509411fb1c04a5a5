#pragma once

#include <stdexcept>
#include <string>

namespace nas {

/// @return what a call complains about when it is given an invalid argument.
template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace nas
