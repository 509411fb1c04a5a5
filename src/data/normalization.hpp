#pragma once

#include <string>
#include <string_view>

namespace nas {

/// A text in normalization form C (Unicode Standard Annex 15, Unicode 14): of the ways to write one
/// letter the shortest. Bytes that are no UTF-8 stay. Cost: one look-up for each character that is
/// not ASCII.
std::string nfc(std::string_view text);

}  // namespace nas
