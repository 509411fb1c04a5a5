#include "core/words_only.hpp"

namespace nas {

namespace {

bool& words_only() {
  static bool words_only = false;
  return words_only;
}

}  // namespace

void have_words_only() { words_only() = true; }

void require_more_than_words() {
  if (words_only()) throw BeyondWords();
}

}  // namespace nas
