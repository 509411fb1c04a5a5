#include <string>
#include <string_view>

#include "data/archive.hpp"
#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/text.hpp"
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

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& location) {
  return text_corpus("proteins", "sequences of UniProt, as mmseqs2 14 has them for examples",
                     read_data_set("proteins", location), settings, context);
}

NAS_REGISTER_PREPARATION({.key = "proteins",
                          .summary = "a line for each sequence; of twenty one to valid and one to "
                                     "test",
                          .file = __FILE__},
                         prepare);

NAS_REGISTER_CORPUS({.key = "proteins",
                     .summary = "20,000 protein sequences of UniProt, 9.1 M amino acids; related "
                                "ones may be in several splits",
                     .settings = with_tokenizer("residue"),
                     .file = __FILE__},
                    load);

}  // namespace

}  // namespace nas
