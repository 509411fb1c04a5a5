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

namespace nas {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSide = 28;
constexpr std::size_t kPixels = kSide * kSide;
constexpr std::size_t kImage = 1 + kPixels;  // bytes in a split
constexpr std::int64_t kClasses = 10;
constexpr std::size_t kValid = 5000;
constexpr std::int64_t kMostPatches = 65536;  // different ones

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

/// For each image a byte for its class and one for each pixel, row by row.
std::string read_images(const fs::path& from, const std::string& name) {
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
  std::string bytes;
  bytes.reserve(images * kImage);
  for (std::size_t i = 0; i < images; ++i) {
    bytes += classes[i];
    bytes.append(pixels, i * kPixels, kPixels);
  }
  return bytes;
}

void prepare(const fs::path& from, const fs::path& to) {
  const auto train = read_images(from, "train");
  const auto test = read_images(from, "t10k");
  if (train.size() <= kValid * kImage) {
    throw InputError("holds " + std::to_string(train.size() / kImage) +
                     " images to train, must be above " + std::to_string(kValid));
  }
  const auto cut = train.size() - kValid * kImage;
  write_durably(to / "train.txt", std::string_view(train).substr(0, cut));
  write_durably(to / "valid.txt", std::string_view(train).substr(cut));
  write_durably(to / "test.txt", test);
}

/// How images become tokens. Ids: the classes, the patches, then what comes before them. A patch of
/// p x p pixels of L levels is a number of p^2 digits to base L, row by row, the first lowest.
struct Form {
  std::int64_t side;
  std::int64_t levels;
  std::int64_t patch;
  bool asks_pixels;

  [[nodiscard]] std::int64_t length() const { return side / patch * (side / patch); }
  [[nodiscard]] std::int64_t patches() const {
    std::int64_t number = 1;
    for (std::int64_t i = 0; i < patch * patch && number <= kMostPatches; ++i) number *= levels;
    return number;
  }
  [[nodiscard]] std::int64_t vocabulary() const {
    return kClasses + patches() + (asks_pixels ? 1 : 0);
  }

  void require() const {
    if (kSide % side != 0) {
      throw InputError("fashion_mnist: data.side = " + std::to_string(side) +
                       ", must divide 28: 7, 14 or 28");
    }
    if (side % patch != 0) {
      throw InputError("fashion_mnist: data.patch = " + std::to_string(patch) +
                       ", must divide data.side = " + std::to_string(side));
    }
    if (patches() > kMostPatches) {
      throw InputError("fashion_mnist: data.levels = " + std::to_string(levels) + " to the power " +
                       std::to_string(patch * patch) + ", the pixels of a patch, must be at most " +
                       std::to_string(kMostPatches));
    }
  }

  /// The level of the mean of a square, at the row and column of its first pixel.
  [[nodiscard]] std::int64_t level(std::string_view pixels, std::int64_t row,
                                   std::int64_t column) const {
    const std::int64_t step = kSide / side;
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < step * step; ++i) {
      const auto at = static_cast<std::size_t>((row + i / step) * kSide + column + i % step);
      sum += static_cast<unsigned char>(pixels[at]);
    }
    return sum / (step * step) * levels / 256;
  }

  /// The patches, row by row.
  void add_patches(std::string_view pixels, std::vector<std::int32_t>& tokens) const {
    const std::int64_t step = kSide / side;
    for (std::int64_t row = 0; row < kSide; row += step * patch) {
      for (std::int64_t column = 0; column < kSide; column += step * patch) {
        std::int64_t number = 0;
        for (std::int64_t i = patch * patch - 1; i >= 0; --i) {
          number =
              number * levels + level(pixels, row + i / patch * step, column + i % patch * step);
        }
        tokens.push_back(static_cast<std::int32_t>(kClasses + number));
      }
    }
  }

  /// @param most  images that are taken, the first ones.
  [[nodiscard]] Windows windows(std::string_view bytes, std::int64_t most) const {
    Windows windows;
    windows.length = length();
    if (bytes.size() % kImage != 0) {
      throw InputError("fashion_mnist: a split has " + std::to_string(bytes.size()) +
                       " bytes, must be a multiple of " + std::to_string(kImage) +
                       ": move its folder away and get it again with: nas-data get fashion_mnist");
    }
    for (; !bytes.empty() && windows.size() < most; bytes.remove_prefix(kImage)) {
      const auto label = static_cast<unsigned char>(bytes.front());
      if (label >= kClasses) {
        throw InputError("fashion_mnist: image " + std::to_string(windows.size() + 1) +
                         " of a split is of class " + std::to_string(label) + ", must be below 10");
      }
      windows.starts.push_back(std::ssize(windows.tokens));
      if (asks_pixels) windows.tokens.push_back(static_cast<std::int32_t>(kClasses + patches()));
      add_patches(bytes.substr(1, kPixels), windows.tokens);
      if (asks_pixels) continue;
      windows.targets.resize(windows.tokens.size(), static_cast<std::int32_t>(kNotScored));
      windows.targets.back() = label;
    }
    return windows;
  }
};

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& location) {
  const Form form{.side = settings.get<std::int64_t>("side"),
                  .levels = settings.get<std::int64_t>("levels"),
                  .patch = settings.get<std::int64_t>("patch"),
                  .asks_pixels = settings.get<std::string>("asks") == "pixels"};
  form.require();
  if (context != form.length()) {
    throw InputError("fashion_mnist: model.context = " + std::to_string(context) +
                     ", must be the pixels of an image: " + std::to_string(form.length()) +
                     " where data.side = " + std::to_string(form.side) +
                     (form.patch > 1 ? ", data.patch = " + std::to_string(form.patch) : ""));
  }
  const auto texts = read_data_set("fashion_mnist", location, /*bytes=*/true);
  const auto train = settings.get<std::int64_t>("train_examples");
  const auto valid = settings.get<std::int64_t>("valid_examples");
  require_memory("fashion_mnist: data.train_examples = " + std::to_string(train),
                 8.0 * static_cast<double>((train + valid + 10000) * (form.length() + 1)));
  Corpus corpus;
  corpus.name = "fashion_mnist";
  corpus.description =
      "Fashion-MNIST, " + std::to_string(form.side) + " x " + std::to_string(form.side) +
      " pixels of " + std::to_string(form.levels) + " levels, row by row" +
      (form.patch > 1
           ? ", in patches of " + std::to_string(form.patch) + " x " + std::to_string(form.patch)
           : "");
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

NAS_REGISTER_PREPARATION(
    {.key = "fashion_mnist",
     .summary = "785 bytes for each image, its class and its pixels; of those to "
                "train the last 5,000 to valid",
     .file = __FILE__},
    prepare);

NAS_REGISTER_CORPUS(
    {.key = "fashion_mnist",
     .summary = "70,000 grey pictures of ten kinds of clothes, 28 x 28, as sequences of pixels: "
                "their class, or the next pixel (Xiao et al. 2017, arXiv:1708.07747)",
     .settings = {{.name = "asks",
                   .default_value = std::string("class"),
                   .help = "class: one of ten behind the last pixel, task classification; pixels: "
                           "each next one, bits per dimension are nll / ln 2 / patch^2",
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
                  {.name = "patch",
                   .default_value = std::int64_t{1},
                   .help = "pixels of a side of what is one token; model.context is the square of "
                           "data.side / data.patch, tokens are levels^(patch^2)",
                   .min = 1,
                   .max = 4},
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
