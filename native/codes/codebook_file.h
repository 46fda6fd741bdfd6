// The file of a codebook: `codebook-<hash>` (16 hexadecimal digits) in the folder of its index. The codes of a segment
// name their codebook by its hash. The index removes the file when no codes name it any more.
//
//   offset size field
//   0      8    magic "MAXSIMCB"
//   8      4    formatVersion: 3, or 2 without directions
//   12     4    crc32c of bytes [16, 64)
//   16     8    hash of the content, as Codebook::hash
//   24     4    dim
//   28     4    centroids, 1..2^21
//   32     4    groups of centroids
//   36     4    share, f32 (CodebookData::share)
//   40     4    token vectors that the index had when the codebook was fitted; 2^32 - 1 stands for more
//   44     4    codebooks of the index before this one; 0 in files of earlier builds
//   48     4    directions; 0 = none, then codewords describe the components of a residual themselves
//   52     12   zero
//   64          sections, each padded with zeros to a multiple of 64:
//     centroids    i8  [centroids][dim], then 64 bytes of zeros
//     scales       f16 [centroids], then 64 zeros: component value = centroid * scale
//     groups       i8  [groups][dim], then 64 bytes of zeros
//     groupScales  f16 [groups], then 64 zeros
//     groupStarts  u32 [groups + 1]               group g has the centroids [groupStarts[g], groupStarts[g+1])
//     directions   i8  [directions][dim], then 64 bytes of zeros; absent without directions
//     directionScales f16 [directions], then 64 zeros; absent without directions
//     codewords    f32 [32][16][width]            width = directions / 32, or dim / 32 without, rounded up
#pragma once

#include "codes/codebook.h"

#include <cstdint>
#include <optional>
#include <string>

namespace maxsimd {

std::string codebookName(uint64_t hash);
/// The path of a codebook in the folder of `neighbour`, which is a segment or a file of codes.
std::string codebookPath(const std::string& neighbour, uint64_t hash);

/// Writes the codebook to `path` durably, unless the file already has this content.
void saveCodebook(const std::string& path, const Kernel& kernel, const Codebook& codebook);

/// Returns nothing if the file is missing, damaged or of another content than `hash`.
std::optional<Codebook> loadCodebook(const std::string& path, const Kernel& kernel, uint32_t dim, uint64_t hash,
                                     MemoryOwner owner = nobody());

/// The size of the file that `saveCodebook` writes.
uint64_t codebookFileBytes(const Codebook& codebook);

}  // namespace maxsimd
