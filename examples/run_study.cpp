// Runs CONFIG in FOLDER and prints its front, "NAME VALUE..." a line.

#include <exception>
#include <iostream>

#include <attnas/study/study.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const nas::Study study(argv[1], {"budget.asks=200"}, argv[2]);
    const auto run = study.run();
    for (const auto i : run.front) {
      std::cout << run.ranking[i].label;
      for (const double value : run.ranking[i].values) std::cout << ' ' << value;
      std::cout << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
