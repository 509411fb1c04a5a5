// Prints every plug-in of the installed library, one "KIND KEY" a line.

#include <iostream>
#include <string>
#include <vector>

#include "data/corpus.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/mixer_kind.hpp"
#include "genotype/slots.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"
#include "training/task.hpp"

namespace {

void print(const std::string& kind, const std::vector<std::string>& keys) {
  for (const auto& key : keys) std::cout << kind << ' ' << key << '\n';
}

}  // namespace

int main() {
  print("algorithms", nas::algorithms().keys());
  print("objectives", nas::objectives().keys());
  print("problems", nas::problems().keys());
  print("corpora", nas::corpora().keys());
  for (const auto& gene : nas::component_genes()) {
    print("attention/" + std::string(gene), nas::components().keys(gene));
  }
  for (const auto* gene : {"position", "pattern", "decay", "maps"}) {
    print("attention/" + std::string(gene), nas::components().keys(gene));
  }
  print("attention/vector_norm", nas::components().keys("head_norm"));
  print("feed_forward", nas::components().keys("ffn"));
  print("mixers", nas::components().keys("mixer"));
  print("mixers/kinds", nas::mixer_kinds().keys());
  print("recurrent/feature", nas::components().keys("feature"));
  print("recurrent/update", nas::components().keys("update"));
  print("recurrent/decay", nas::components().keys("decay", "recurrent"));
  print("recurrent/gating", nas::components().keys("gating", "recurrent"));
  print("tasks", nas::tasks().keys());
  print("norms", nas::components().keys("norm"));
}
