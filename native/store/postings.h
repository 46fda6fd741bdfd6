// Which records of a sealed segment carry a filter term.
//
// The file is `<segment>.postings`, derived from the terms of the segment's records. One that is missing, damaged, of
// another format or of another content is not used: filters read the records until it has been built anew.
//
//   offset size field
//   0      8    magic "MAXSIMPO"
//   8      4    formatVersion (1)
//   12     4    crc32c of bytes [16, 64)
//   16     8    segmentId
//   24     4    records of the segment
//   28     4    terms
//   32     4    postings, of all terms
//   36     4    footerCrc of the segment's trailer
//   40     4    crc32c of the directory
//   44     20   zero
//   64          directory, each section padded with zeros to a multiple of 64:
//     termKeys     u8  [terms][16]         ascending
//     termOffsets  u32 [terms + 1]         term t matches postings [termOffsets[t], termOffsets[t+1])
//     termCrcs     u32 [terms]             crc32c of each term's postings
//   then, likewise padded
//     postings     u32 [postings]          record numbers, ascending within a term
//
// The directory is checked when the file is opened, the postings of a term when a filter first asks for it, and all of
// them by `inspectPostings`.
#pragma once

#include "files/file.h"
#include "store/format.h"

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

using Term = std::array<uint8_t, termBytes>;

struct Posting {
  Term term;
  uint32_t record;

  friend auto operator<=>(const Posting&, const Posting&) = default;
};
static_assert(sizeof(Posting) == 20);

/// The content that a file of postings belongs to.
struct PostingsOwner {
  uint64_t segmentId;
  uint32_t records;
  uint32_t footerCrc;
};

class SealedPostings {
 public:
  static std::string pathOf(const std::string& segmentPath) { return segmentPath + ".postings"; }

  /// Nothing if there is no usable file beside the segment.
  static std::shared_ptr<const SealedPostings> open(const std::string& segmentPath, const PostingsOwner& owner);
  /// Saves durably, in place of whatever file there was, and opens it. In any order; a posting given twice counts once.
  static std::shared_ptr<const SealedPostings> save(const std::string& segmentPath, const PostingsOwner& owner,
                                                    std::vector<Posting> postings);

  /// Records that carry the term, or nothing if its postings are damaged or cannot be read.
  std::optional<std::vector<uint32_t>> find(const Term& term) const;
  uint64_t fileBytes() const { return mapping_->bytes(); }

 private:
  friend struct PostingsInspection inspectPostings(const std::string& path, bool verify);

  SealedPostings(std::shared_ptr<const Mapping> mapping, uint32_t records);
  bool readDirectory(uint32_t terms, uint32_t postings, uint32_t crc);
  /// Nothing where the directory, which was checked when the file was opened, has changed since.
  std::optional<std::span<const uint32_t>> list(size_t term) const;
  bool intact(size_t term, std::span<const uint32_t> records) const;

  std::shared_ptr<const Mapping> mapping_;
  uint32_t records_;
  std::span<const Term> keys_;
  std::span<const uint32_t> offsets_;
  std::span<const uint32_t> crcs_;
  std::span<const uint32_t> postings_;
  /// Whether the postings of each term were found intact.
  std::unique_ptr<std::atomic<bool>[]> checked_;
};

struct PostingsInspection {
  uint32_t terms = 0;
  /// Summed over all terms.
  uint32_t postings = 0;
  /// Empty = nothing is wrong.
  std::string damage;
};

/// A file of postings by its header and, if `verify`, by the checksums of its contents. `unsupported_version` for one
/// of another format.
PostingsInspection inspectPostings(const std::string& path, bool verify);

}  // namespace maxsimd
