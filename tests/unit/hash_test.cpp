#include "core/hash.hpp"

#include "core/error.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

// FIPS 180-4, examples of NIST.
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kTwoBlocks =
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";

TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256(""), kEmpty);
  EXPECT_EQ(sha256("abc"), kAbc);
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), kTwoBlocks);
}

TEST(Sha256, PiecesHashLikeTheWhole) {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  EXPECT_EQ(hash.hex(), kAbc);
}

TEST(Sha256, HashesAFileLargerThanItsBuffer) {
  const auto path = fs::path(::testing::TempDir()) / "nas_hash_test";
  const std::string text((1U << 20U) + 17, 'x');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(sha256_file(path), sha256(text));
  fs::remove(path);
}

TEST(Sha256, MissingFileIsAnInputError) {
  EXPECT_EQ(message_of<InputError>([&] { (void)sha256_file("no/such/file"); }),
            "no/such/file: cannot be read");
}

}  // namespace
}  // namespace nas
