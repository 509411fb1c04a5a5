#!/usr/bin/env bash
# PyTorch: a C++ program that is linked with LibTorch of PyPI's wheel calls LibTorch's copy of std::filesystem, not that of the
# system's C++ library. The wheel's libraries export what was built into them from another libstdc++, and the usual order of
# linking looks there first: the program runs functions of a compiler that it was not built with, and with another version of
# PyTorch other ones. With PyTorch 2.11.0 a program ended in such a function.
#
# Versions: torch 2.15.0 and 2.11.0, GCC 12.2 of Debian 12; as of 2026-11-28.
# Seen:     addresses of status(), file_size(), current_path() and temp_directory_path() in a program: linked as usual all four
#           lie in libtorch_cpu.so (2.11.0: libtorch.so), with the C++ library named first in libstdc++.so.6.
# Source:   libtorch_cpu.so is linked with static parts of the toolchain's libstdc++ and exports about 140 of its symbols without
#           a version, which satisfies references to any (nm --dynamic --demangle libtorch_cpu.so).
# Advice:   name the C++ library first: -Wl,--push-state,--no-as-needed,-lstdc++,--pop-state before LibTorch's libraries, in
#           programs and in shared libraries that use LibTorch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
cd "$folder"
cat >program.cpp <<'END'
#include <dlfcn.h>

#include <filesystem>
#include <iostream>
#include <string>

namespace fs = std::filesystem;

void place(const std::string& name, const void* function) {
  Dl_info found;
  const bool known = dladdr(function, &found) != 0;
  std::cout << ' ' << name << " in " << (known ? fs::path(found.dli_fname).filename().string() : "?") << ';';
}

int main() {
  place("status()", reinterpret_cast<void*>(static_cast<fs::file_status (*)(const fs::path&)>(&fs::status)));
  place("file_size()", reinterpret_cast<void*>(static_cast<std::uintmax_t (*)(const fs::path&)>(&fs::file_size)));
  place("current_path()", reinterpret_cast<void*>(static_cast<fs::path (*)()>(&fs::current_path)));
  place("temp_directory_path()", reinterpret_cast<void*>(static_cast<fs::path (*)()>(&fs::temp_directory_path)));
  std::cout << '\n';
}
END
libraries=$("$folder/venv/bin/python" -c 'import torch; print(torch.__path__[0] + "/lib")')
link=(-std=c++20 program.cpp "-Wl,--no-as-needed" "-L$libraries" "-Wl,-rpath,$libraries" "-Wl,--allow-shlib-undefined"
  -ltorch -ltorch_cpu -lc10)
g++ "${link[@]}" -o usual
g++ "-Wl,--push-state,--no-as-needed,-lstdc++,--pop-state" "${link[@]}" -o first
"$folder/venv/bin/python" -c 'import torch; print("versions: torch", torch.__version__)'
usual=$(./usual)
first=$(./first)
echo "expected: functions of std::filesystem in the system's libstdc++.so.6, however LibTorch is linked"
echo "seen, linked as usual:$usual"
echo "seen, with libstdc++ named first:$first"
case $usual in *libtorch*) ;; *) echo "the behaviour has changed" >&2 && exit 1 ;; esac
case $first in *libtorch*) echo "the behaviour has changed" >&2 && exit 1 ;; esac
