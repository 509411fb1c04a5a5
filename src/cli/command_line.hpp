#pragma once

#include <iostream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cli/program.hpp"
#include "cli/versions.hpp"
#include "core/error.hpp"

namespace nas {

/// Reads the command line of a program whose words, a configuration and overrides, stand between
/// its options.
/// @param visible  the options, bound to where their values go.
/// @param words    receives the words.
/// @throws InputError naming the program whose --help lists the options.
inline void parse_command_line(int argc, char** argv, const std::string& program,
                               const boost::program_options::options_description& visible,
                               std::vector<std::string>& words) {
  namespace po = boost::program_options;
  po::options_description all;
  all.add(visible).add_options()("words", po::value(&words));
  po::positional_options_description positional;
  positional.add("words", -1);
  po::variables_map values;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(),
              values);
    po::notify(values);
  } catch (const po::error& error) {
    throw InputError(std::string("command line: ") + error.what() + "; " + program +
                     " --help lists the options");
  }
}

/// Prints what --help or --version ask for. @return whether one of them was given.
inline bool answers(bool help, bool version, const char* usage,
                    const boost::program_options::options_description& visible) {
  if (help) {
    std::cout << usage << visible << help_end();
  } else if (version) {
    std::cout << version_text();
  }
  return help || version;
}

}  // namespace nas
