// What byte pairs cost: byte_pairs_time FILE VOCABULARY [FOLDER] learns them of a text and encodes it, prints seconds, tokens and
// memory as JSON, and writes tokenizer.json and the ids (ids.bin, int32) into the folder.

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "data/byte_pairs.hpp"
#include "data/data_set.hpp"

namespace {

double seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

int run(const std::string& file, const std::string& vocabulary, const std::string& folder) {
  const auto text = nas::read_text_file(file);
  const double start = seconds();
  const auto pairs = nas::train_byte_pairs(text, std::stoll(vocabulary), nas::PretokenRule::gpt2);
  const double trained = seconds();
  std::vector<std::int32_t> ids;
  pairs->encode(text, ids);
  const double encoded = seconds();
  if (pairs->decode({ids.begin(), ids.end()}) != text) {
    std::cerr << "ERROR: the text does not come back\n";
    return 1;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::cout << nlohmann::json{{"train_seconds", trained - start},
                              {"encode_seconds", encoded - trained},
                              {"tokens", ids.size()},
                              {"bytes", text.size()},
                              {"vocabulary", pairs->size()},
                              {"peak_bytes", usage.ru_maxrss * 1024}}
                   .dump()
            << '\n';
  if (folder.empty()) return 0;
  std::ofstream(folder + "/tokenizer.json") << pairs->file();
  std::ofstream out(folder + "/ids.bin", std::ios::binary);
  for (const auto id : ids) out.write(reinterpret_cast<const char*>(&id), sizeof id);
  return out.flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: byte_pairs_time FILE VOCABULARY [FOLDER]\n";
    return 2;
  }
  return run(argv[1], argv[2], argc > 3 ? argv[3] : "");
}
