#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(debian_reference("debian_reference_pt", "pt", "Portuguese", __FILE__));

}  // namespace nas
