#pragma once

#include <cstdint>
#include <string>

#include "models/model_folder.hpp"

namespace nas {

/// Answers in the form of OpenAI's API on this machine alone (127.0.0.1): GET /v1/models, and
/// POST /v1/completions, whole or in parts (server-sent events). A refusal is that API's error.
/// Prints the address first, and a line for each request. Only requests that name this machine as
/// their host, and send JSON as such, are heard: pages of other sites that a browser shows do not.
///
/// Returns after a signal to stop (install_stop_handlers()), which ends a completion after its
/// next token.
/// @param id    the model's name.
/// @param port  0: any that is free.
/// @throws InputError where tokens are no text, or the port is in use.
void serve_model(ModelFolder folder, const std::string& id, std::uint16_t port);

}  // namespace nas
