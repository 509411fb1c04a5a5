#pragma once

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cli/program.hpp"
#include "cli/versions.hpp"
#include "core/error.hpp"
#include "core/terminal.hpp"
#include "evaluation/settings.hpp"
#include "report/text.hpp"

namespace nas {

/// What an option's value must be that could not be read: a number, since any text is one.
inline const char* wanted(const boost::program_options::options_description& visible,
                          std::string option) {
  namespace po = boost::program_options;
  option.erase(0, option.find_first_not_of('-'));
  const auto* found = visible.find_nothrow(option, /*approx=*/false);
  const auto* value = found != nullptr ? found->semantic().get() : nullptr;
  return dynamic_cast<const po::typed_value<double>*>(value) != nullptr ? "a number" : "an integer";
}

/// What an unknown option was meant as: one that begins so, a setting of that name, or else the nearest; empty: nothing is.
inline std::string option_hint(const std::string& given,
                               const boost::program_options::options_description& visible) {
  auto name = given.substr(given.find_first_not_of('-'));
  std::vector<std::string> known;
  for (const auto& option : visible.options()) known.push_back("--" + option->long_name());
  const auto hint = did_you_mean("--" + name, known);
  if (hint.starts_with("; did you mean --" + name)) return hint;
  std::replace(name.begin(), name.end(), '-', '_');
  for (const auto& section : setting_sections()) {
    for (const auto& setting : section.settings) {
      if (setting.name != name) continue;
      return "; settings are written without dashes: " +
             (section.path.empty() ? "" : section.path + ".") + name + "=VALUE";
    }
  }
  return hint;
}

/// Reads the command line of a program whose words, a configuration and overrides, stand between
/// its options.
/// @param visible  the options, bound to where their values go.
/// @param words    receives the words.
/// @return the options that are given, switches aside.
/// @throws InputError naming the program whose --help lists the options.
inline boost::program_options::variables_map parse_command_line(
    int argc, char** argv, const std::string& program,
    const boost::program_options::options_description& visible, std::vector<std::string>& words) {
  namespace po = boost::program_options;
  po::options_description all;
  all.add(visible).add_options()("words", po::value(&words));
  po::positional_options_description positional;
  positional.add("words", -1);
  try {
    po::variables_map values;
    namespace style = po::command_line_style;
    po::store(po::command_line_parser(argc, argv)
                  .options(all)
                  .positional(positional)
                  .style(style::unix_style & ~style::allow_guessing)
                  .run(),
              values);
    for (const auto& [name, value] : values) {
      const auto* text = boost::any_cast<std::string>(&value.value());
      if (text == nullptr || !text->empty() || value.defaulted()) continue;
      throw InputError("command line: --" + name + " is empty, must have a value or be left out");
    }
    po::notify(values);
    return values;
  } catch (const po::invalid_option_value& error) {
    throw InputError(std::string("command line: ") + error.what() + ", must be " +
                     wanted(visible, error.get_option_name()));
  } catch (const po::unknown_option& error) {
    throw InputError(std::string("command line: ") + error.what() +
                     option_hint(error.get_option_name(), visible) + "; " + program +
                     " --help lists the options");
  } catch (const po::error& error) {
    throw InputError(std::string("command line: ") + error.what() + "; " + program +
                     " --help lists the options");
  }
}

/// What --help prints.
/// @param end  what follows the options.
inline std::string help_text(const std::string& usage,
                             const boost::program_options::options_description& visible,
                             const std::string& end = help_end()) {
  namespace po = boost::program_options;
  const auto width = line_width();
  const auto columns = static_cast<unsigned>(
      std::min<std::size_t>(width, po::options_description::m_default_line_length));
  po::options_description fitted("Options", columns, columns / 2);
  for (const auto& option : visible.options()) fitted.add(option);
  std::ostringstream text;
  text << usage << fitted << end;
  return wrapped(text.str(), width, /*paragraphs=*/true);
}

/// Prints what --help or --version ask for. @return whether one of them was given.
inline bool answers(bool help, bool version, const char* usage,
                    const boost::program_options::options_description& visible) {
  if (help) {
    std::cout << help_text(usage, visible);
  } else if (version) {
    std::cout << version_text();
  }
  return help || version;
}

}  // namespace nas
