#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(debian_reference("debian_reference_de", "de", "German", __FILE__));

}  // namespace nas
