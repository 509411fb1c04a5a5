#pragma once

/// Before a namespace's name in a header that is installed: what is declared there is exported by
/// the shared libraries. They are compiled with hidden visibility, so that nothing else is.
#define NAS_PUBLIC [[gnu::visibility("default")]]
