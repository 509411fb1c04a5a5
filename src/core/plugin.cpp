#include "core/plugin.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>

#include <dlfcn.h>

#include "core/define_registry.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/installed.hpp"
#include "core/optimizers.hpp"
#include "core/registry.hpp"
#include "core/version.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// Before the text that attnas_add_plugin() compiles into a library: what it was built for.
constexpr std::string_view kStamp = "attnas plug-in for ";

struct Loaded {
  std::mutex mutex;
  std::vector<PluginFile> files;
  /// What is wrong with libraries that stay loaded, by hash: they would not register again.
  std::map<std::string, std::string> refused;
};

Loaded& loaded() {
  static Loaded loaded;
  return loaded;
}

/// What a library registers while it is loaded.
struct Registrations {
  std::set<std::string> made;
  std::map<std::string, std::string> taken;  ///< files of those that were first
  std::vector<std::string> mistakes;
};

/// Of the library that this thread is loading, if any.
Registrations*& registrations() {
  thread_local Registrations* registrations = nullptr;
  return registrations;
}

/// A plug-in finds attnas in the process. Where attnas is no library of the program, but of a module
/// of Python, say, it is not among what plug-ins see until it is made so.
void show_attnas() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&show_attnas), &here) == 0) return;
  // What the program itself holds is seen already, and cannot be opened.
  (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

std::string plugin_bytes(const fs::path& file) {
  std::error_code unknown;
  std::ifstream stream(file, std::ios::binary);
  if (!stream || !fs::is_regular_file(file, unknown)) {
    throw InputError(file.string() + ": there is no such file, or it cannot be read");
  }
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// Code that was built against other headers may do anything once it is loaded, so the bytes are
/// asked before.
void require_stamp(const std::string& bytes, const std::string& name) {
  const auto begin = bytes.find(kStamp);
  if (begin == std::string::npos) {
    throw InputError(name + ": is no plug-in of attnas, must be built by attnas_add_plugin()");
  }
  const std::string built_for(bytes.c_str() + begin + kStamp.size());
  const auto here = std::string(kVersion) + " (" + kRevision + ")";
  if (built_for != here) {
    const auto prefix = installation().string();
    throw InputError(
        name + ": was built for attnas " + built_for + ", this is " + here + ": build it again" +
        (prefix.empty() ? "" : ", against the installation of this program: " + prefix));
  }
}

std::vector<std::function<std::string()>>& checks() {
  static std::vector<std::function<std::string()>> checks;
  return checks;
}

std::string mistake_of_checks() {
  std::string text;
  for (const auto& mistake : checks()) {
    if (auto found = mistake(); !found.empty()) text += (text.empty() ? "" : ", ") + found;
  }
  return text;
}

/// @return what is wrong with what a library has registered; empty: nothing.
std::string mistake_of(const Registrations& found) {
  std::string text;
  for (const auto& [what, first] : found.taken) {
    text += (text.empty() ? "" : ", ") + what + " is registered already" +
            (first.empty() ? "" : ", by " + first);
  }
  for (const auto& mistake : found.mistakes) text += (text.empty() ? "" : ", ") + mistake;
  if (text.empty()) text = mistake_of_checks();
  if (text.empty() && found.made.empty()) {
    text = "registers nothing, must have a NAS_REGISTER_...(...)";
  }
  return text;
}

}  // namespace

PluginFile load_plugin(const fs::path& given, PluginSource source) {
  const auto file = fs::absolute(given).lexically_normal();
  const auto name = file.string();
  auto& all = loaded();
  const std::lock_guard lock(all.mutex);
  if (source == PluginSource::configuration) {
    for (const auto& known : all.files) {
      const bool given_anew = known.source == PluginSource::command_line;
      if (given_anew && fs::path(known.file).filename() == file.filename()) return known;
    }
  }
  if (!is_utf8(name)) throw InputError(name + ": must have a path in UTF-8");
  const auto bytes = plugin_bytes(file);
  const auto hash = sha256(bytes);
  for (auto& known : all.files) {
    if (known.sha256 != hash) continue;
    known.source = std::max(known.source, source);
    return known;
  }
  for (const auto& known : all.files) {
    if (known.file == name) {
      throw InputError(name + ": was loaded before in another build, which this process keeps");
    }
  }
  auto mistake = all.refused.find(hash);
  if (mistake == all.refused.end()) {
    require_stamp(bytes, name);
    show_attnas();
    Registrations found;
    registrations() = &found;
    const void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    registrations() = nullptr;
    if (handle == nullptr) throw InputError(name + ": cannot be loaded: " + dlerror());
    const auto text = mistake_of(found);
    if (text.empty()) {
      all.files.push_back({name, hash, {found.made.begin(), found.made.end()}, source});
      return all.files.back();
    }
    mistake = all.refused.emplace(hash, text).first;
  }
  throw InputError(name + ": " + mistake->second);
}

std::vector<PluginFile> loaded_plugins() {
  auto& all = loaded();
  const std::lock_guard lock(all.mutex);
  return all.files;
}

bool note_registration(const std::string& kind, const std::string& key, bool fresh,
                       const std::string& first) {
  auto* found = registrations();
  if (found != nullptr) {
    if (fresh) {
      found->made.insert(kind + " " + key);
    } else {
      found->taken.try_emplace(kind + " " + key, first);
    }
  } else if (!fresh) {
    std::fprintf(stderr, "%s '%s' is registered twice%s%s\n", kind.c_str(), key.c_str(),
                 first.empty() ? "" : ", first by ", first.c_str());
    std::abort();
  }
  return fresh;
}

void note_mistake(const std::string& mistake) {
  if (mistake.empty()) return;
  if (auto* found = registrations()) {
    found->mistakes.push_back(mistake);
  } else {
    std::fprintf(stderr, "%s\n", mistake.c_str());
    std::abort();
  }
}

bool check_registrations(std::function<std::string()> mistake) {
  checks().push_back(std::move(mistake));
  return true;
}

void require_sound_registrations() {
  if (const auto mistake = mistake_of_checks(); !mistake.empty()) throw std::logic_error(mistake);
}

NAS_DEFINE_REGISTRY(OptimizerRegistry, optimizers, "optimizer")

}  // namespace nas
