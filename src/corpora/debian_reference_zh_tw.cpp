#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(debian_reference("debian_reference_zh_tw", "zh-tw", "traditional Chinese",
                                   __FILE__));

}  // namespace nas
