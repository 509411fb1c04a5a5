#include "cli/with_torch.hpp"

#include "cli/catalogue.hpp"
#include "cli/program.hpp"
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

}  // namespace nas

int nas_program(const char* program, int argc, char** argv) {
  return nas::run_program(nas::kWithTorch, program, argc, argv);
}

const char* nas_catalogue() {
  static const std::string kText = [] {
    auto json = nas::catalogue();
    json["version"] = nas::version_line();
    return json.dump();
  }();
  return kText.c_str();
}
