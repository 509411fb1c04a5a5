// The objective "faulty", the perplexity, of which NAS_TEST_FAULT = "WHERE HOW" says how it fails:
// at the WHERE-th training run of the process, or at those of mechanisms that have WHERE in their
// names. Before it hangs it makes the file NAS_TEST_FAULT_SAYS, if there is one to make.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "search/objective.hpp"

namespace {

void fail(const std::string& how) {
  if (how == "abort") std::abort();
  if (how == "thread") std::thread([] { std::abort(); }).join();
  if (how == "segfault") std::raise(SIGSEGV);
  if (how == "kill") std::raise(SIGKILL);
  if (how == "input") throw nas::InputError("injected");
  if (how == "machine") throw nas::MachineError("injected");
  if (how == "defect") throw std::logic_error("injected");
  if (how == "memory") throw std::bad_alloc();
  if (const char* says = std::getenv("NAS_TEST_FAULT_SAYS"); how == "hang" && says != nullptr) {
    std::ofstream(says).flush();
  }
  while (how == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// The number of a training run, from 1, at its end; 0 when its value is asked for again.
std::size_t number_if_new(const std::string& id) {
  static std::mutex mutex;
  static std::set<std::string> known;
  const std::lock_guard lock(mutex);
  return known.insert(id).second ? known.size() : 0;
}

double perplexity(const nas::Evaluation& evaluation) {
  std::string where, how;
  const char* fault = std::getenv("NAS_TEST_FAULT");
  std::istringstream(fault == nullptr ? "" : fault) >> where >> how;
  const bool numbered = where.find_first_not_of("0123456789") == std::string::npos;
  const bool here = numbered ? where == std::to_string(number_if_new(evaluation.id))
                             : evaluation.candidate.find(where) != std::string::npos;
  if (here) fail(how);
  return nas::quality(evaluation, "perplexity");
}

NAS_REGISTER_OBJECTIVE({.key = "faulty", .summary = "perplexity that fails", .file = "faulty.cpp"},
                       [](const nas::Parameters& /*settings*/) {
                         return nas::Objective{
                             .unit = "1", .trained = perplexity, .range = nas::expected_perplexity};
                       });

}  // namespace
