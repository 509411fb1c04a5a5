#include "data/ids.hpp"

#include <string>

namespace nas {

namespace {

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  return read_ids("ids", settings.get<std::string>("path"), context);
}

NAS_REGISTER_CORPUS(
    {.key = "ids",
     .summary = "token ids of your own, of anything: a folder that attnas prepare, or a "
                "program of yours, has written",
     .settings = {{.name = "path",
                   .default_value = std::string(),
                   .help = "the folder, beside the configuration or in the current "
                           "folder",
                   .required = true,
                   .names_file = true}},
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
