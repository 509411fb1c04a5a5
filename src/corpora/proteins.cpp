#include <string>
#include <string_view>

#include "data/archive.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/text_source.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

// FASTA: "> name" before each sequence, which may take several lines.
void prepare(const fs::path& from, const fs::path& to) {
  Shares shares;
  std::string sequence;
  const auto end_sequence = [&] {
    if (!sequence.empty()) shares.add(sequence + '\n');
    sequence.clear();
  };
  for_each_line(read_gzip(file_below(from, "DB.fasta.gz")), [&](std::string_view line) {
    if (line.starts_with('>')) {
      end_sequence();
    } else {
      for_each_word(line, [&](std::string_view part) { sequence += part; });
    }
  });
  end_sequence();
  shares.write(to);
}

NAS_REGISTER_TEXT({.key = "proteins",
                   .summary = "20,000 protein sequences of UniProt, 9.1 M amino acids; related "
                              "ones may be in several splits",
                   .text = "sequences of UniProt, as mmseqs2 14 has them for examples",
                   .splits = "a line for each sequence; of twenty one to valid and one to "
                             "test",
                   .prepare = prepare,
                   .settings = with_tokenizer("residue"),
                   .file = __FILE__});

}  // namespace

}  // namespace nas
