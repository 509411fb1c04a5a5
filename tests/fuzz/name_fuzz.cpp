// Names of models: what can be parsed has one canonical form, whose name reads back as itself.

#include "fuzz/fuzz.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "unit/paper_components.hpp"

namespace {

void read(std::string_view name, nas::Semantics semantics) {
  nas::Architecture frame;
  frame.semantics = semantics;
  nas::fuzz::taken([&] { (void)nas::to_string(nas::parse_mechanism(name, semantics)); });
  nas::fuzz::taken([&] { (void)nas::candidate_of(nas::parse_unchecked(name, frame)); });
  nas::fuzz::taken([&] {
    const auto architecture = nas::canonical(nas::parse_model(name, frame));
    const auto canonical = nas::to_string(architecture);
    (void)nas::num_parameters(architecture);
    (void)nas::forward_flops(architecture);
    nas::Architecture again;
    const auto read_back = [&] { again = nas::canonical(nas::parse_model(canonical, frame)); };
    nas::fuzz::require(nas::fuzz::taken(read_back), "a canonical name is one: " + canonical);
    nas::fuzz::require(nas::to_string(again) == canonical, canonical + " reads back as itself");
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto name = nas::fuzz::text(data, size);
  for (const auto semantics : {nas::Semantics::corrected, nas::Semantics::published}) {
    read(name, semantics);
  }
  return 0;
}
