#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(hundred_million_bytes(
    "enwik8",
    "the first 100 million bytes of the English Wikipedia of 2006, with its XML (Mahoney 2009)",
    "the first 100 million bytes of Wikipedia of 2006", __FILE__));

}  // namespace nas
