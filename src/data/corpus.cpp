#include "data/corpus.hpp"

#include <cstdlib>

namespace nas {

DataLocation default_data_location() {
  const char* folder = std::getenv("NAS_DATA_DIR");
  if (folder == nullptr || *folder == '\0') return {};
  return {.folder = folder};
}

CorpusRegistry& corpora() {
  static CorpusRegistry registry("corpus");
  return registry;
}

}  // namespace nas
