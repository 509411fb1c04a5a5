#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(hundred_million_bytes(
    "text8",
    "English Wikipedia of 2006 as letters a to z and blanks, 100 MB in one line (Mahoney 2009)",
    "Wikipedia of 2006 as 100 million small letters and blanks", __FILE__));

}  // namespace nas
