#pragma once

namespace nas {

/// Begins a program that needs LibTorch for a part of what it does, in two stages. The first loads
/// libattnas_base and its catalogue, and gives the answers that words are: help, lists, mistakes. What
/// goes beyond begins the process anew, which then loads libattnas, with LibTorch, and nothing else.
/// @param program  "nas_run".   @return exit code.
int start(const char* program, int argc, char** argv);

}  // namespace nas

// What it looks up by name in the libraries.
extern "C" {

/// What nas_words() returns, having printed and changed nothing, where more than words is asked for.
enum { kBeyondWords = -1 };

/// Of libattnas_base, whose catalogue lies beside it: a program's answer without LibTorch.
/// @param program  "nas_run".   @return exit code, or kBeyondWords.
[[gnu::visibility("default")]] int nas_words(const char* program, int argc, char** argv);

/// Of libattnas: a program. @return exit code.
[[gnu::visibility("default")]] int nas_program(const char* program, int argc, char** argv);

/// Of libattnas: what nas_words() reads, as JSON.
[[gnu::visibility("default")]] const char* nas_catalogue();
}
