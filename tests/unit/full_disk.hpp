#pragma once

#include "core/error.hpp"
#include "prelude.hpp"
#include "unit/forked.hpp"

namespace nas::testing {

/// @return what a program would end with where `call` may write no file beyond 4096 bytes: 75 if it
/// says that there is no space, 2 if it blames its input, 1 if it says something else, 0 if nothing.
template <class Call>
int code_on_a_full_disk(Call call) {
  return in_child([&] {
    limit_file_size(4096);
    try {
      call();
    } catch (const MachineError& error) {
      return std::string(error.what()).starts_with("no space left in ") ? 75 : 1;
    } catch (const InputError&) {
      return 2;
    } catch (...) {
      return 1;
    }
    return 0;
  });
}

}  // namespace nas::testing
