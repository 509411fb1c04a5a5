// A text as a corpus in every unit and layout: "CONTEXT VOCABULARY", and after NULs the texts of
// the three splits. Every window can be read, and holds ids of the vocabulary.

#include <algorithm>
#include <sstream>

#include "data/text.hpp"
#include "fuzz/fuzz.hpp"

namespace {

using nas::fuzz::require;

void read_windows(const nas::Windows& windows, std::int64_t vocabulary) {
  std::vector<std::int64_t> input(static_cast<std::size_t>(windows.length)), target = input;
  for (const auto offset : {std::int64_t{0}, windows.shift - 1}) {
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      windows.read(i, offset, input.data(), target.data());
      for (std::size_t t = 0; t < input.size(); ++t) {
        require(input[t] >= 0 && input[t] < vocabulary, "inputs are ids");
        require(target[t] == nas::kNotScored || (target[t] >= 0 && target[t] < vocabulary),
                "targets are ids, or not scored");
      }
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto parts = nas::fuzz::parts(nas::fuzz::text(data, size));
  parts.resize(4);
  std::int64_t context = 2, vocabulary = 0;
  std::istringstream(parts[0]) >> context >> vocabulary;
  context = std::clamp<std::int64_t>(context, 2, 64);
  for (const auto* unit : {"word", "byte"}) {
    for (const auto* layout : {"standard", "published"}) {
      nas::Parameters settings(nas::text_settings());
      settings.set("unit", std::string(unit));
      settings.set("layout", std::string(layout));
      settings.set("vocabulary", std::clamp<std::int64_t>(vocabulary, 0, 1'000'000));
      nas::fuzz::taken([&] {
        const auto corpus =
            nas::text_corpus("fuzz", "fuzz", {parts[1], parts[2], parts[3]}, settings, context);
        for (const auto* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
          require(windows->size() > 0, "a split has a window");
          read_windows(*windows, corpus.vocabulary);
        }
      });
    }
  }
  return 0;
}
