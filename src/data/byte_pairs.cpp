#include "data/byte_pairs.hpp"

#include <algorithm>
#include <iterator>
#include <queue>
#include <tuple>

#include "core/error.hpp"

namespace nas {

namespace {

bool is_printable(unsigned byte) {
  return (0x21 <= byte && byte <= 0x7E) || (0xA1 <= byte && byte <= 0xAC) || byte >= 0xAE;
}

}  // namespace

char32_t character_of_byte(unsigned char byte) {
  if (is_printable(byte)) return byte;
  char32_t before = 0;
  for (unsigned other = 0; other < byte; ++other) before += is_printable(other) ? 0U : 1U;
  return 0x100 + before;
}

const std::vector<unsigned char>& bytes_in_order() {
  static const auto kBytes = [] {
    std::vector<unsigned char> bytes(256);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
    std::sort(bytes.begin(), bytes.end(), [](unsigned char a, unsigned char b) {
      return character_of_byte(a) < character_of_byte(b);
    });
    return bytes;
  }();
  return kBytes;
}

/// Joins the bytes of one pre-token after the other.
class BytePairs::Joiner {
 public:
  explicit Joiner(const BytePairs& pairs) : pairs_(pairs) {}

  /// Appends the ids of a pre-token.
  void append(std::string_view pretoken, std::vector<std::int32_t>& ids) {
    parts_.clear();
    for (std::size_t i = 0; i < pretoken.size(); ++i) {
      const auto place = static_cast<std::int32_t>(i);
      parts_.push_back({pairs_.bytes_[static_cast<unsigned char>(pretoken[i])], place - 1,
                        i + 1 < pretoken.size() ? place + 1 : -1});
    }
    for (std::int32_t i = 0; i + 1 < std::ssize(parts_); ++i) offer(i);
    while (!offers_.empty()) {
      const auto offer = offers_.top();
      offers_.pop();
      take(offer);
    }
    for (const auto& part : parts_) {
      if (part.id >= 0) ids.push_back(part.id);
    }
  }

 private:
  /// A token, in a list; id -1: joined to the one before.
  struct Part {
    std::int32_t id, before, behind;
  };
  struct Offer {
    std::int32_t rank, left, id, left_id, right_id;
    bool operator<(const Offer& other) const {  // the least is on top
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };

  Part& part(std::int32_t place) { return parts_[static_cast<std::size_t>(place)]; }

  void offer(std::int32_t left) {
    if (left < 0 || part(left).behind < 0) return;
    const auto left_id = part(left).id;
    const auto right_id = part(part(left).behind).id;
    const auto found = pairs_.joined_.find(pair_key(left_id, right_id));
    if (found == pairs_.joined_.end()) return;
    offers_.push({found->second.rank, left, found->second.id, left_id, right_id});
  }

  /// Joins a pair, unless one of its parts was joined to another meanwhile.
  void take(const Offer& offer) {
    auto& left = part(offer.left);
    if (left.id != offer.left_id || left.behind < 0) return;
    auto& right = part(left.behind);
    if (right.id != offer.right_id) return;
    left.id = offer.id;
    right.id = -1;
    left.behind = right.behind;
    if (left.behind >= 0) part(left.behind).before = offer.left;
    this->offer(left.before);
    this->offer(offer.left);
  }

  const BytePairs& pairs_;
  std::vector<Part> parts_;
  std::priority_queue<Offer> offers_;
};

BytePairs::BytePairs(std::vector<std::string> tokens, std::vector<Merge> merges, PretokenRule rule)
    : tokens_(std::move(tokens)), bytes_(256, -1), rule_(rule) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (const auto& token : tokens_) {
    const auto id = static_cast<std::int32_t>(ids.size());
    if (!ids.emplace(token, id).second)
      throw InputError("token " + std::to_string(id) + " is there already");
    if (token.size() == 1) bytes_[static_cast<unsigned char>(token[0])] = id;
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    if (bytes_[byte] < 0) throw InputError("has no token of byte " + std::to_string(byte));
  }
  std::stable_sort(merges.begin(), merges.end(),
                   [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
  for (const auto& [pair, rank] : merges) {
    const auto text = tokens_[static_cast<std::size_t>(pair.first)] +
                      tokens_[static_cast<std::size_t>(pair.second)];
    const auto found = ids.find(text);
    if (found == ids.end()) {
      throw InputError("merge " + std::to_string(merges_.size()) + " makes no token");
    }
    if (joined_.emplace(pair_key(pair.first, pair.second), Joined{rank, found->second}).second) {
      merges_.push_back(pair);
    }
  }
}

std::int64_t BytePairs::size() const { return std::ssize(tokens_); }

void BytePairs::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  // Most pre-tokens were there before: their ids are in what is written already.
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;
  Joiner joiner(*this);
  for_each_pretoken(text, rule_, [&](std::string_view pretoken) {
    const auto [found, fresh] = known.try_emplace(pretoken, ids.size(), 0);
    auto& [begin, number] = found->second;
    if (fresh) {
      joiner.append(pretoken, ids);
      number = ids.size() - begin;
      return;
    }
    for (std::size_t i = 0; i < number; ++i) ids.push_back(ids[begin + i]);
  });
}

std::string BytePairs::decode(const std::vector<std::int64_t>& ids) const {
  std::string text;
  for (const auto id : ids) text += tokens_[static_cast<std::size_t>(id)];
  return text;
}

}  // namespace nas
