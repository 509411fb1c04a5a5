// What programs do in a process without LibTorch.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>

#include <dlfcn.h>

#include "cli/catalogue.hpp"
#include "cli/passive_waiting.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/start.hpp"
#include "cli/with_torch.hpp"
#include "core/words_only.hpp"

namespace nas {

namespace {

/// Threads that wait passively need no second beginning for it: see wait_passively().
int begin_study(const Study& study, const StudyArguments& arguments, char** /*argv*/,
                std::string& /*kept*/) {
  const auto threads = study.experiment().evaluation.get<std::int64_t>("threads");
  if (!arguments.dry_run) choose_passive_waiting(threads);
  return beyond_words<int>();
}

constexpr WithTorch kWordsOnly{.version_text = beyond_words,
                               .run_study = begin_study,
                               .run_pilot = beyond_words,
                               .reproduce = beyond_words,
                               .run_comparison = beyond_words,
                               .analyse_run = beyond_words,
                               .analysis_table = beyond_words,
                               .use_model = beyond_words,
                               .work = beyond_words};

template <int (*kProgram)(int, char**)>
int without_torch(const WithTorch& /*torch*/, int argc, char** argv) {
  return kProgram(argc, argv);
}

/// The catalogue that lies beside the library and is of the same build; else null.
nlohmann::json catalogue_beside_library() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&have_words_only), &library) == 0) return nullptr;
  const auto folder = std::filesystem::path(library.dli_fname).parent_path();
  const auto path = folder / "attnas" / "words.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return nullptr;
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  const bool ours = json.is_object() && json.value("version", nlohmann::json()) == version_line();
  return ours ? json : nullptr;
}

/// Holds back what is said on standard error: after BeyondWords it is said once more.
class HeldBack {
 public:
  HeldBack() : before_(std::cerr.rdbuf(held_.rdbuf())) {}
  ~HeldBack() { std::cerr.rdbuf(before_); }
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;

  [[nodiscard]] std::string text() const { return held_.str(); }

 private:
  std::ostringstream held_;
  std::streambuf* before_;
};

}  // namespace

int run_program(const WithTorch& torch, const std::string& name, int argc, char** argv) {
  static const std::map<std::string, int (*)(const WithTorch&, int, char**)> kPrograms{
      {"nas_analyse", nas_analyse},
      {"nas_compare", nas_compare},
      {"nas_data", without_torch<nas_data>},
      {"nas_export", without_torch<nas_export>},
      {"nas_model", nas_model},
      {"nas_run", nas_run},
      {"nas_train", nas_train},
      {"nas_work", nas_work}};
  return kPrograms.at(name)(torch, argc, argv);
}

}  // namespace nas

int nas_words(const char* program, int argc, char** argv) {
  const auto catalogue = nas::catalogue_beside_library();
  if (catalogue.is_null()) return kBeyondWords;
  nas::have_words_only();
  try {
    nas::register_catalogue(catalogue);
  } catch (const std::exception&) {  // a damaged one
    return kBeyondWords;
  }
  try {
    std::string said;
    int code = 0;
    {
      const nas::HeldBack held;
      code = nas::run_program(nas::kWordsOnly, program, argc, argv);
      said = held.text();
    }
    std::cerr << said << std::flush;
    return code;
  } catch (const nas::BeyondWords&) {
    return kBeyondWords;
  }
}
