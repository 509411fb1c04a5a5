// Searches the space of CONFIG in FOLDER for what a function of its own says, with a loop of its own.

#include <exception>
#include <iostream>

#include <attnas/study/ask_and_tell.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    nas::AskAndTell study(nas::Study(argv[1], {"budget.evaluations=12"}, argv[2]));
    while (auto order = study.ask()) {
      auto& evaluation = order->evaluation;
      evaluation.status = nas::Status::ok;
      evaluation.values["perplexity"] = 100.0 + 1e-6 * evaluation.values.at("flops");
      study.tell(evaluation);
    }
    const auto& best = study.result().ranking.front();
    std::cout << best.label << ' ' << best.values.front() << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
