// A folder of ids: "LAYOUT CONTEXT VOCABULARY PAD LABELS", and after NULs the ids of the three splits
// and the begins of lines, or labels, of each, as numbers; then what card.json is instead, if not
// empty. Every window can be read, and holds ids of the vocabulary.

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/temporary_folder.hpp"
#include "data/ids.hpp"
#include "fuzz/fuzz.hpp"

namespace {

using nas::fuzz::require;

void read_windows(const nas::Windows& windows, std::int64_t vocabulary) {
  require(windows.size() > 0, "a split has a window");
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

template <class Number>
std::string bytes_of(const std::string& numbers) {
  std::istringstream in(numbers);
  std::string bytes;
  for (Number number = 0; in >> number;) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto parts = nas::fuzz::parts(nas::fuzz::text(data, size));
  parts.resize(8);
  std::string layout;
  std::int64_t context = 2, vocabulary = 1, pad = -1, labels = 0;
  std::istringstream(parts[0]) >> layout >> context >> vocabulary >> pad >> labels;
  context = std::clamp<std::int64_t>(context, 0, 64);
  const nas::TemporaryFolder folder;
  nlohmann::json card{{"format", 1},
                      {"description", "fuzz"},
                      {"unit", "word"},
                      {"many", "words"},
                      {"vocabulary", vocabulary},
                      {"special", {{"pad", pad}, {"unknown", -1}, {"end_of_sentence", -1}}},
                      {"layout", layout},
                      {"labels", labels},
                      {"bytes", {{"valid", 7}, {"test", 7}}}};
  if (labels > 0) card["task"] = "classification";
  const auto write = [&](const std::string& name, const std::string& bytes) {
    folder.write(name, bytes);
    card["sha256"][name] = nas::sha256(bytes);
  };
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string split = i == 0 ? "train" : i == 1 ? "valid" : "test";
    write(split + ".bin", bytes_of<std::int32_t>(parts[1 + i]));
    write(split + ".lines.bin", bytes_of<std::int64_t>(parts[4 + i]));
    write(split + ".labels.bin", bytes_of<std::int32_t>(parts[4 + i]));
  }
  folder.write("card.json", parts[7].empty() ? card.dump(-1, ' ', false,
                                                         nlohmann::json::error_handler_t::replace)
                                             : parts[7]);
  nas::fuzz::taken([&] {
    const auto corpus = nas::read_ids("fuzz", folder.path(), context);
    for (const auto* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
      read_windows(*windows, corpus.vocabulary);
    }
  });
  return 0;
}
