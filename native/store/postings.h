// The records of a sealed segment that carry each filter term.
//
// The file is `<segment>.postings`, derived from the terms of the segment's records. A file that is missing, damaged,
// of another format or of another content is not used. Filters read the records until it has been built again.
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
// The directory is checked when the file is opened, the postings of a term when a filter first uses it, and all of them
// by `inspectPostings`.
#pragma once

#include "files/file.h"
#include "store/derived_file.h"
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

class SealedPostings {
 public:
  static std::string pathOf(const std::string& segmentPath) { return segmentPath + ".postings"; }

  /// Opens the file beside the segment; null if there is none that can be used.
  static std::shared_ptr<const SealedPostings> open(const std::string& segmentPath, const SegmentIdentity& owner);
  /// Replaces the file durably and opens it. `postings` come in any order; duplicates count once.
  static std::shared_ptr<const SealedPostings> save(const std::string& segmentPath, const SegmentIdentity& owner,
                                                    std::vector<Posting> postings);

  static constexpr size_t nowhere = SIZE_MAX;
  /// Where each of these terms stands; `nowhere` for one that no record carries. `nullopt` if that cannot be read.
  std::optional<std::vector<size_t>> find(std::span<const Term> terms) const;
  /// The records that carry the term at a place, ascending; `nullopt` if its postings are damaged or cannot be read.
  std::optional<std::vector<uint32_t>> records(size_t place) const;
  uint64_t fileBytes() const { return mapping_->bytes(); }

 private:
  friend struct PostingsInspection inspectPostings(const std::string& path, bool verify);

  SealedPostings(std::shared_ptr<const Mapping> mapping, uint32_t records);
  bool readDirectory(uint32_t terms, uint32_t postings, uint32_t crc);
  /// The postings of a term. `nullopt` if the directory changed since it was checked.
  std::optional<std::span<const uint32_t>> list(size_t term) const;
  bool intact(size_t term, std::span<const uint32_t> records) const;

  std::shared_ptr<const Mapping> mapping_;
  uint32_t records_;
  std::span<const Term> keys_;
  std::span<const uint32_t> offsets_;
  std::span<const uint32_t> crcs_;
  std::span<const uint32_t> postings_;
  /// Whether the postings of each term have been found intact.
  std::unique_ptr<std::atomic<bool>[]> checked_;
};

struct PostingsInspection {
  uint32_t terms = 0;
  /// The sum over all terms.
  uint32_t postings = 0;
  /// Empty = nothing is wrong.
  std::string damage;
};

/// Inspects a file of postings: its header and, with `verify`, the checksums of its contents. Throws
/// `unsupported_version` for another format.
PostingsInspection inspectPostings(const std::string& path, bool verify);

}  // namespace maxsimd
