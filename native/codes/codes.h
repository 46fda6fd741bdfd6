// What a sealed segment's chunks are known by before they are scored exactly: the set of centroids nearest to the
// token vectors of each chunk, and for each centroid the chunks that have it.
//
// It lives in `<segment>.codes`, is derived data, and a damaged or foreign file is ignored:
//
//   offset size field
//   0      8    magic "MAXSIMCD"
//   8      4    formatVersion (5)
//   12     4    crc32c of bytes [16, 64)
//   16     8    segmentId
//   24     4    dim
//   28     4    centroids, 1..2^21
//   32     4    chunks
//   36     4    codes, of all chunks
//   40     4    rows, token vectors with residual bytes
//   44     4    crc32c of the sections of the directory
//   48     4    crc32c of the other sections
//   52     4    zero
//   56     8    hash of the codebook, which stands in a file of its own (codebook_file.h)
//   64          sections, each padded with zeros to a multiple of 64; first those of the directory:
//     codeOffsets  u32 [chunks + 1]               chunk c has codes [codeOffsets[c], codeOffsets[c+1])
//     rowOffsets   u32 [chunks + 1]               chunk c has residual rows [rowOffsets[c], rowOffsets[c+1])
//     listOffsets  u32 [blocks][centroids + 1]    a block is 65,536 chunks; centroid k has lists [.[k], .[k+1])
//   then
//     codes        u32 [codes]                  ascending and unique within a chunk: the centroid in the low 24 bits, above
//                                               them how many token vectors have it; 255 stands for more
//     residuals    u8  [rows][16]               nearest codewords of share * centroid's remainder, by chunk and code; the
//                                               even subspace's in the low half of a byte
//     lists        u16 [codes]                    chunks of the block, counted from its first, ascending
//
// The directory is copied and checked when the file is opened, the rest (98 in 100 bytes) by `inspectCodes`: what stands there
// decides which chunks are scored exactly, never a score, and no value of it leads outside the file or a table.
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
  /// The codebook with this hash, which an index holds only once: `load` reads it. Null where that gives nothing.
  using Load = std::function<std::optional<Codebook>()>;
  using Intern = std::function<std::shared_ptr<const Codebook>(uint64_t hash, const Load& load)>;

  ~ChunkCodes();
  ChunkCodes(const ChunkCodes&) = delete;
  ChunkCodes& operator=(const ChunkCodes&) = delete;

  static std::string pathOf(const Segment& segment) { return segment.path() + ".codes"; }

  /// Nothing if there is no usable file beside the segment.
  static std::shared_ptr<const ChunkCodes> open(const Segment& segment, const Kernel& kernel, const Intern& intern);
  /// Assigns every token vector, saves codes and codebook durably and opens them.
  static std::shared_ptr<const ChunkCodes> build(const Segment& segment, const Kernel& kernel, const Codebook& codebook,
                                                 const Intern& intern, const Deadline& deadline);

  /// Memory that a build works with for each token vector of any dimension, at most: code, codewords, list entry, and
  /// offsets where it is a chunk.
  static constexpr uint64_t buildBytesPerRow = 48;

  const Codebook& codebook() const { return *codebook_; }
  const std::shared_ptr<const Codebook>& sharedCodebook() const { return codebook_; }
  uint32_t chunks() const { return uint32_t(codeOffsets_.size()) - 1; }
  uint64_t codeCount() const { return codeOffsets_.back(); }
  uint64_t fileBytes() const { return mapping_->bytes(); }
  /// False once something could not be read: what came of the codes may be anything.
  bool isRead() const { return !mapping_->failure(); }

  std::span<const uint32_t> of(uint32_t chunk) const {
    return codes_.subspan(codeOffsets_[chunk], codeOffsets_[chunk + 1] - codeOffsets_[chunk]);
  }
  /// With the codewords of its token vectors.
  CodedChunk coded(uint32_t chunk) const {
    const uint32_t first = rowOffsets_[chunk];
    return {of(chunk), residuals_ + size_t(first) * residualBytes, rowOffsets_[chunk + 1] - first};
  }

  // These ask for memory (kernels/cache_lines.h), first for what says where something of a chunk is.
  void loadPlace(uint32_t chunk) const {
    loadLines(codeOffsets_[chunk]);
    loadLines(rowOffsets_[chunk]);
  }
  void loadCodes(uint32_t chunk) const { loadLines(of(chunk).data(), of(chunk).size_bytes()); }

  /// Chunks of a block that have a centroid.
  std::span<const uint16_t> list(uint32_t block, uint32_t centroid) const {
    const uint32_t* offsets = listPlace(block, centroid);
    return lists_.subspan(offsets[0], offsets[1] - offsets[0]);
  }
  /// Asks for the memory that says where a list is.
  void loadListPlace(uint32_t block, uint32_t centroid) const { loadLines(*listPlace(block, centroid)); }

 private:
  ChunkCodes() = default;
  const uint32_t* listPlace(uint32_t block, uint32_t centroid) const {
    return listOffsets_.data() + size_t(block) * (codebook_->count() + 1) + centroid;
  }
  bool readDirectory(const File& file, const CodesLayout& layout, const CodesHeader& header);

  std::shared_ptr<const Mapping> mapping_;
  bool isHeld_ = false;
  MemoryShare directoryShare_;
  /// A copy: what says where something lies must not change.
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
  /// Summed over all chunks.
  uint32_t codes = 0;
  /// Empty = nothing is wrong.
  std::string damage;
};

/// A file of codes by its header and, if `verify`, by the checksum of its contents and
/// its codebook. `unsupported_version` for one of another format.
CodesInspection inspectCodes(const std::string& path, bool verify);

/// An even sample of the token vectors of sealed segments, without those of damaged records; `UnreadRecord` if none is
/// left.
TokenSample sampleTokenVectors(std::span<const std::shared_ptr<const Segment>> segments, uint32_t rowsMax,
                               const Deadline& deadline);

}  // namespace maxsimd
