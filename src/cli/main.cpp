// Every program: NAS_PROGRAM is its name.

#include "cli/programs.hpp"

int main(int argc, char** argv) { return nas::NAS_PROGRAM(argc, argv); }
