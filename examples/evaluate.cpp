// Trains MECHANISM and the baseline once as CONFIG says, at its learning rate, in FOLDER, and prints "NAME PERPLEXITY" of
// both, on the validation split.

#include <exception>
#include <iostream>
#include <string>

#include <attnas/study/study.hpp>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const auto listed = "mechanisms=[\"" + std::string(argv[1]) + "\"]";
    const nas::Study study(argv[2], {listed, "retest.replicates=1", "retest.tune=false"}, argv[3]);
    const auto run = study.run();
    for (const auto& evaluation : run.evaluations) {
      std::cout << run.label(evaluation.candidate) << ' ' << evaluation.values.at("perplexity")
                << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
