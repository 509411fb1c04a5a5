#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(debian_reference("debian_reference_zh_cn", "zh-cn", "simplified Chinese",
                                   __FILE__));

}  // namespace nas
