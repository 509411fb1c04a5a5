// Writes what the first stage of programs knows without LibTorch (cli/start.hpp), when attnas is built.

#include <cstdio>

#include "cli/start.hpp"

int main() { return std::puts(nas_catalogue()) < 0 ? 1 : 0; }
