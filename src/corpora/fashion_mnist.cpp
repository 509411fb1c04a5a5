#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "data/archive.hpp"
#include "data/corpus.hpp"
#include "data/corpus_facts.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSide = 28;
constexpr std::size_t kPixels = kSide * kSide;
constexpr std::int64_t kClasses = 10;
constexpr std::size_t kValid = 5000;

// Of IDX: big-endian words, then bytes.
std::uint32_t word_at(const std::string& bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    word = word << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return word;
}

/// What an IDX file holds behind its head of `head` bytes. @param items  of `size` bytes each.
std::string read_idx(const fs::path& file, std::uint32_t magic, std::size_t head, std::size_t size,
                     std::size_t& items) {
  auto bytes = read_gzip(file);
  if (bytes.size() < head || word_at(bytes, 0) != magic ||
      bytes.size() != head + size * word_at(bytes, 4)) {
    throw InputError(file.string() + ": is no IDX file of " + std::to_string(size) +
                     " bytes an item");
  }
  items = word_at(bytes, 4);
  return bytes.substr(head);
}

/// A line for each image: its class, a blank, and two hexadecimal digits for each pixel.
std::vector<std::string> read_lines(const fs::path& from, const std::string& name) {
  std::size_t images = 0;
  std::size_t labels = 0;
  const auto pixels =
      read_idx(file_below(from, name + "-images-idx3-ubyte.gz"), 0x803, 16, kPixels, images);
  const auto classes =
      read_idx(file_below(from, name + "-labels-idx1-ubyte.gz"), 0x801, 8, 1, labels);
  if (images != labels) {
    throw InputError(name + ": " + std::to_string(labels) +
                     " labels, must be as many as images: " + std::to_string(images));
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<std::string> lines(images);
  for (std::size_t i = 0; i < images; ++i) {
    lines[i] = std::to_string(classes[i]) + ' ';
    for (const char pixel : std::string_view(pixels).substr(i * kPixels, kPixels)) {
      const auto value = static_cast<unsigned char>(pixel);
      lines[i] += kDigits[value / 16];
      lines[i] += kDigits[value % 16];
    }
    lines[i] += '\n';
  }
  return lines;
}

void prepare(const fs::path& from, const fs::path& to) {
  const auto train = read_lines(from, "train");
  const auto test = read_lines(from, "t10k");
  if (train.size() <= kValid) {
    throw InputError("holds " + std::to_string(train.size()) + " images to train, must be above " +
                     std::to_string(kValid));
  }
  const auto write = [&](const char* name, auto begin, auto end) {
    std::string text;
    for (auto line = begin; line != end; ++line) text += *line;
    write_durably(to / name, text);
  };
  write("train.txt", train.begin(), train.end() - kValid);
  write("valid.txt", train.end() - kValid, train.end());
  write("test.txt", test.begin(), test.end());
}

/// How images become tokens. Ids: the classes, the grey levels, then what comes before pixels.
struct Form {
  std::int64_t side;
  std::int64_t levels;
  bool asks_pixels;

  [[nodiscard]] std::int64_t length() const { return side * side; }
  [[nodiscard]] std::int64_t vocabulary() const {
    return kClasses + levels + (asks_pixels ? 1 : 0);
  }

  /// Levels of the means of squares, row by row.
  void add_pixels(std::string_view digits, std::vector<std::int32_t>& tokens) const {
    const auto value = [&](std::int64_t row, std::int64_t column) {
      const auto at = static_cast<std::size_t>(2 * (row * kSide + column));
      const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
      return 16 * digit(digits[at]) + digit(digits[at + 1]);
    };
    const std::int64_t step = kSide / side;
    for (std::int64_t row = 0; row < kSide; row += step) {
      for (std::int64_t column = 0; column < kSide; column += step) {
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < step * step; ++i) {
          sum += value(row + i / step, column + i % step);
        }
        tokens.push_back(static_cast<std::int32_t>(kClasses + sum / (step * step) * levels / 256));
      }
    }
  }

  /// @param most  images that are taken, the first ones.
  [[nodiscard]] Windows windows(std::string_view text, std::int64_t most) const {
    Windows windows;
    windows.length = length();
    for_each_line(text, [&](std::string_view line) {
      if (windows.size() == most) return;
      if (line.size() != 2 + 2 * kPixels || line[0] < '0' || line[0] > '9' ||
          line.find_first_not_of("0123456789abcdef", 2) != std::string_view::npos) {
        throw InputError("fashion_mnist: line " + std::to_string(windows.size() + 1) +
                         " of a split is no class with " + std::to_string(kPixels) + " pixels");
      }
      windows.starts.push_back(std::ssize(windows.tokens));
      if (asks_pixels) windows.tokens.push_back(static_cast<std::int32_t>(kClasses + levels));
      add_pixels(line.substr(2), windows.tokens);
      if (asks_pixels) return;
      windows.targets.resize(windows.tokens.size(), static_cast<std::int32_t>(kNotScored));
      windows.targets.back() = line[0] - '0';
    });
    return windows;
  }
};

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& location) {
  const Form form{.side = settings.get<std::int64_t>("side"),
                  .levels = settings.get<std::int64_t>("levels"),
                  .asks_pixels = settings.get<std::string>("asks") == "pixels"};
  if (kSide % form.side != 0) {
    throw InputError("fashion_mnist: data.side = " + std::to_string(form.side) +
                     ", must divide 28: 7, 14 or 28");
  }
  if (context != form.length()) {
    throw InputError("fashion_mnist: model.context = " + std::to_string(context) +
                     ", must be the pixels of an image: " + std::to_string(form.length()) +
                     " where data.side = " + std::to_string(form.side));
  }
  const auto texts = read_data_set("fashion_mnist", location);
  const auto train = settings.get<std::int64_t>("train_examples");
  const auto valid = settings.get<std::int64_t>("valid_examples");
  require_memory("fashion_mnist: data.train_examples = " + std::to_string(train),
                 8.0 * static_cast<double>((train + valid + 10000) * (form.length() + 1)));
  Corpus corpus;
  corpus.name = "fashion_mnist";
  corpus.description = "Fashion-MNIST, " + std::to_string(form.side) + " x " +
                       std::to_string(form.side) + " pixels of " + std::to_string(form.levels) +
                       " levels, row by row";
  corpus.vocabulary = form.vocabulary();
  corpus.train = form.windows(texts.train, train);
  corpus.valid = form.windows(texts.valid, valid);
  corpus.test = form.windows(texts.test, 10000);
  if (form.asks_pixels) {
    corpus.unigram_perplexity = unigram_perplexity(corpus.train, corpus.valid, corpus.vocabulary);
  } else {
    corpus.task = "classification";
    corpus.labels = kClasses;
    corpus.chance = label_chance(corpus.valid, kClasses);
  }
  corpus.hash = corpus_hash(corpus);
  return corpus;
}

NAS_REGISTER_PREPARATION({.key = "fashion_mnist",
                          .summary = "a line for each image; of those to train the last 5,000 to "
                                     "valid",
                          .file = __FILE__},
                         prepare);

NAS_REGISTER_CORPUS(
    {.key = "fashion_mnist",
     .summary = "70,000 grey pictures of ten kinds of clothes, 28 x 28, as sequences of pixels: "
                "their class, or the next pixel (Xiao et al. 2017, arXiv:1708.07747)",
     .settings = {{.name = "asks",
                   .default_value = std::string("class"),
                   .help = "class: one of ten behind the last pixel, task classification; pixels: "
                           "each next one, bits per dimension are nll / ln 2",
                   .choices = {"class", "pixels"}},
                  {.name = "side",
                   .default_value = std::int64_t{14},
                   .help = "pixels of a side, means of squares: 7, 14 or 28; model.context is its "
                           "square",
                   .min = 7,
                   .max = 28},
                  {.name = "levels",
                   .default_value = std::int64_t{16},
                   .help = "grey levels of a pixel",
                   .min = 2,
                   .max = 256},
                  {.name = "train_examples",
                   .default_value = std::int64_t{55000},
                   .help = "images to train on, the first ones",
                   .min = 1,
                   .max = 55000},
                  {.name = "valid_examples",
                   .default_value = std::int64_t{5000},
                   .help = "images to validate on; tests are on all 10,000",
                   .min = 1,
                   .max = 5000}},
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
