#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(debian_reference("debian_reference_en", "en", "English", __FILE__));

}  // namespace nas
