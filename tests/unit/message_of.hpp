#pragma once

#include <stdexcept>
#include <string>

namespace nas {

/// @return what a call complains about when it is given an invalid argument, or where it throws another kind of error.
template <class Error = std::invalid_argument, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace nas
