// A codebook as `codebook-<hash>` (16 hexadecimal digits) in the folder of its index. The codes of segments name it by
// its hash; the index removes it when no codes do any more.
//
//   offset size field
//   0      8    magic "MAXSIMCB"
//   8      4    formatVersion (2)
//   12     4    crc32c of bytes [16, 64)
//   16     8    hash of the content, as Codebook::hash
//   24     4    dim
//   28     4    centroids, 1..2^21
//   32     4    groups of centroids
//   36     4    share, f32
//   40     4    token vectors of the index when it was fitted, at most 2^32 - 1
//   44     4    fits before this one; 0 in files of earlier builds
//   48     16   zero
//   64          sections, each padded with zeros to a multiple of 64:
//     centroids    i8  [centroids][dim], then 64 bytes of zeros
//     scales       f16 [centroids], likewise: component value = centroid * scale
//     groups       i8  [groups][dim], likewise
//     groupScales  f16 [groups], likewise
//     groupStarts  u32 [groups + 1]               group g has the centroids [groupStarts[g], groupStarts[g+1])
//     codewords    f32 [32][16][width]            width = dim / 32, rounded up
#pragma once

#include "codes/codebook.h"

#include <cstdint>
#include <optional>
#include <string>

namespace maxsimd {

std::string codebookName(uint64_t hash);
/// In the folder of `neighbour`, a segment or its codes.
std::string codebookPath(const std::string& neighbour, uint64_t hash);

/// Makes `path` a durable file of this codebook, unless it is one already.
void saveCodebook(const std::string& path, const Kernel& kernel, const Codebook& codebook);

/// Nothing if there is no usable file with this content.
std::optional<Codebook> loadCodebook(const std::string& path, const Kernel& kernel, uint32_t dim, uint64_t hash);

/// The size of the file that `saveCodebook` writes.
uint64_t codebookFileBytes(const Codebook& codebook);

}  // namespace maxsimd
