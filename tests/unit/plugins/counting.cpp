// The corpus "plugged", with what a build chooses for its summary, so that builds differ.

#include "data/corpus.hpp"

namespace {

NAS_REGISTER_CORPUS({.key = "plugged", .summary = NAS_SUMMARY, .file = "counting.cpp"},
                    [](const nas::Parameters& /*settings*/, std::int64_t /*context*/,
                       const nas::DataLocation& /*location*/) { return nas::Corpus{}; });

}  // namespace
