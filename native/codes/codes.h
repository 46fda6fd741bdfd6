// The codes of a sealed segment, by which a search chooses the chunks that it scores exactly: for each chunk the
// centroids nearest to its token vectors, with residual codes, and for each centroid the list of chunks that have it.
//
// They are derived data in the file `<segment>.codes`. A file that is damaged or belongs to another segment is ignored:
//
//   offset size field
//   0      8    magic "MAXSIMCD"
//   8      4    formatVersion (5)
//   12     4    crc32c of bytes [16, 64)
//   16     8    segmentId
//   24     4    dim
//   28     4    centroids, 1..2^21
//   32     4    chunks
//   36     4    codes of all chunks together
//   40     4    rows: token vectors that have residual bytes
//   44     4    crc32c of the sections of the directory
//   48     4    crc32c of the other sections
//   52     4    zero
//   56     8    hash of the codebook, which stands in a file of its own (codebook_file.h)
//   64          sections, each padded with zeros to a multiple of 64; first those of the directory:
//     codeOffsets  u32 [chunks + 1]             chunk c has codes [codeOffsets[c], codeOffsets[c+1])
//     rowOffsets   u32 [chunks + 1]             chunk c has residual rows [rowOffsets[c], rowOffsets[c+1])
//     listOffsets  u32 [blocks][centroids + 1]  a block is 65,536 chunks; in block b the list of centroid k is
//                                               lists[listOffsets[b][k], listOffsets[b][k+1])
//   then
//     codes        u32 [codes]                  ascending and unique within a chunk; the low 24 bits are the centroid,
//                                               the high 8 count token vectors that have it; 255 = so many or more
//     residuals    u8  [rows][16]               the codewords nearest to token vector - share * centroid, by chunk and
//                                               code; the low half of a byte is for an even subspace
//     lists        u16 [codes]                  chunks, counted from the first of their block, ascending
//
// The directory is copied and checked when the file is opened. The rest, 98 in 100 bytes, is checked by `inspectCodes`
// alone. That is safe: these bytes decide which chunks are scored exactly, and never a score. No value of them leads
// outside the file or a table.
#pragma once

#include "codes/codebook.h"
#include "codes/codebook_fit.h"
#include "kernels/cache_lines.h"
#include "runtime/deadline.h"
#include "files/memory.h"
#include "store/segment.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace maxsimd {

struct CodesHeader;
struct CodesLayout;

class ChunkCodes {
 public:
  static constexpr uint32_t blockChunks = 65536;
  /// Reads the codebook of the segment from its file. Nothing = there is no usable file.
  using Load = std::function<std::optional<Codebook>()>;
  /// Returns the codebook with this hash. An index holds each codebook only once, so `load` is called only if the index
  /// does not hold it yet. Null = `load` gave nothing.
  using Intern = std::function<std::shared_ptr<const Codebook>(uint64_t hash, const Load& load)>;

  ~ChunkCodes();
  ChunkCodes(const ChunkCodes&) = delete;
  ChunkCodes& operator=(const ChunkCodes&) = delete;

  static std::string pathOf(const Segment& segment) { return segment.path() + ".codes"; }

  /// Returns null if there is no usable file beside the segment.
  static std::shared_ptr<const ChunkCodes> open(const Segment& segment, const Kernel& kernel, const Intern& intern);
  /// Assigns every token vector to its centroid, saves codes and codebook durably, and opens them.
  static std::shared_ptr<const ChunkCodes> build(const Segment& segment, const Kernel& kernel, const Codebook& codebook,
                                                 const Intern& intern, const Deadline& deadline);

  /// Upper bound of the memory that a build takes for each token vector, of any dimension: its code, its codewords, its
  /// list entry, and the offsets of a chunk if the chunk has no other token vector.
  static constexpr uint64_t buildBytesPerRow = 48;

  const Codebook& codebook() const { return *codebook_; }
  const std::shared_ptr<const Codebook>& sharedCodebook() const { return codebook_; }
  uint32_t chunks() const { return uint32_t(codeOffsets_.size()) - 1; }
  uint64_t codeCount() const { return codeOffsets_.back(); }
  uint64_t fileBytes() const { return mapping_->bytes(); }
  /// False once a part of the file could not be read. Results that came from these codes may then be wrong.
  bool isRead() const { return !mapping_->failure(); }

  std::span<const uint32_t> of(uint32_t chunk) const {
    return codes_.subspan(codeOffsets_[chunk], codeOffsets_[chunk + 1] - codeOffsets_[chunk]);
  }
  /// The codes of a chunk, with the codewords of its token vectors.
  CodedChunk coded(uint32_t chunk) const {
    const uint32_t first = rowOffsets_[chunk];
    return {of(chunk), residuals_ + size_t(first) * residualBytes, rowOffsets_[chunk + 1] - first};
  }

  // These two prefetch memory (kernels/cache_lines.h). `loadPlace` comes first: it fetches the offsets that `loadCodes`
  // needs.
  void loadPlace(uint32_t chunk) const {
    loadLines(codeOffsets_[chunk]);
    loadLines(rowOffsets_[chunk]);
  }
  void loadCodes(uint32_t chunk) const { loadLines(of(chunk).data(), of(chunk).size_bytes()); }

  /// The chunks of a block that have this centroid.
  std::span<const uint16_t> list(uint32_t block, uint32_t centroid) const {
    const uint32_t* offsets = listPlace(block, centroid);
    return lists_.subspan(offsets[0], offsets[1] - offsets[0]);
  }
  /// Prefetches the offsets of a list.
  void loadListPlace(uint32_t block, uint32_t centroid) const { loadLines(*listPlace(block, centroid)); }

 private:
  explicit ChunkCodes(const MemoryOwner& owner) : directoryShare_(owner) {}
  const uint32_t* listPlace(uint32_t block, uint32_t centroid) const {
    return listOffsets_.data() + size_t(block) * (codebook_->count() + 1) + centroid;
  }
  bool readDirectory(const File& file, const CodesLayout& layout, const CodesHeader& header);

  std::shared_ptr<const Mapping> mapping_;
  bool isHeld_ = false;
  MemoryShare directoryShare_;
  /// A copy of the checked offsets. The file may change or become unreadable, and a wrong offset would lead outside the
  /// mapping.
  std::vector<uint8_t> directory_;
  std::shared_ptr<const Codebook> codebook_;
  std::span<const uint32_t> codeOffsets_;
  std::span<const uint32_t> codes_;
  std::span<const uint32_t> rowOffsets_;
  const uint8_t* residuals_ = nullptr;
  std::span<const uint32_t> listOffsets_;
  std::span<const uint16_t> lists_;
};

struct CodesInspection {
  uint32_t centroids = 0;
  /// Codes of all chunks together.
  uint32_t codes = 0;
  /// Empty = nothing is wrong.
  std::string damage;
};

/// Checks the header of a file of codes and, if `verify`, the checksums of its content and its codebook. Throws
/// `unsupported_version` for a file of another format.
CodesInspection inspectCodes(const std::string& path, bool verify);

/// Takes an even sample of the token vectors of sealed segments. Token vectors of damaged records are left out. Throws
/// `UnreadRecord` if none is left.
TokenSample sampleTokenVectors(std::span<const std::shared_ptr<const Segment>> segments, uint32_t rowsMax,
                               const Deadline& deadline);

}  // namespace maxsimd
