#include "cli/with_torch.hpp"

#include <map>

#include "cli/catalogue.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/start.hpp"
#include "cli/versions.hpp"

namespace nas {

namespace {

constexpr WithTorch kWithTorch{.version_text = version_text,
                               .run_study = run_study,
                               .run_pilot = run_pilot,
                               .reproduce = reproduce,
                               .run_comparison = run_comparison,
                               .analyse_run = analyse_run,
                               .analysis_table = analysis_table,
                               .use_model = use_model,
                               .work = work};

}  // namespace

int nas_analyse(int argc, char** argv) { return nas_analyse(kWithTorch, argc, argv); }
int nas_compare(int argc, char** argv) { return nas_compare(kWithTorch, argc, argv); }
int nas_model(int argc, char** argv) { return nas_model(kWithTorch, argc, argv); }
int nas_run(int argc, char** argv) { return nas_run(kWithTorch, argc, argv); }
int nas_train(int argc, char** argv) { return nas_train(kWithTorch, argc, argv); }
int nas_work(int argc, char** argv) { return nas_work(kWithTorch, argc, argv); }

}  // namespace nas

int nas_program(const char* program, int argc, char** argv) {
  static const std::map<std::string, int (*)(int, char**)> kPrograms{
      {"nas_analyse", nas::nas_analyse}, {"nas_compare", nas::nas_compare},
      {"nas_export", nas::nas_export},   {"nas_model", nas::nas_model},
      {"nas_run", nas::nas_run},         {"nas_train", nas::nas_train},
      {"nas_work", nas::nas_work}};
  return kPrograms.at(program)(argc, argv);
}

const char* nas_catalogue() {
  static const std::string kText = [] {
    auto json = nas::catalogue();
    json["version"] = nas::version_line();
    return json.dump();
  }();
  return kText.c_str();
}
