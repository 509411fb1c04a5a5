#include "ops/model_failure.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <c10/util/Exception.h>

#include "core/error.hpp"
#include "core/fault.hpp"

namespace nas::nn {

namespace {

template <std::size_t N>
bool says(const std::string& text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&text](std::string_view word) {
    return text.find(word) != std::string::npos;
  });
}

[[noreturn]] void throw_for(const std::string& text) {
  constexpr std::array<std::string_view, 4> kMemory{
      "out of memory", "not enough memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED"};
  constexpr std::array<std::string_view, 2> kDevice{"CUDA", "CUBLAS"};
  constexpr std::array<std::string_view, 3> kBrokenDevice{"CUDA error", "CUDNN_STATUS_INTERNAL",
                                                          "CUDNN_STATUS_EXECUTION_FAILED"};
  if (says(text, kMemory)) {
    if (says(text, kDevice)) throw DeviceOutOfMemory(text);
    throw std::bad_alloc();
  }
  if (says(text, kBrokenDevice)) throw MachineError(text);
  throw CandidateFailure(text);
}

}  // namespace

void rethrow_as_failure() {
  try {
    throw;
  } catch (const StopRequested&) {
    throw;
  } catch (const MachineError&) {
    throw;
  } catch (const MemoryLimitExceeded&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {
    throw;
  } catch (const c10::Error& error) {
    throw_for(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw_for(error.what());
  }
}

}  // namespace nas::nn
