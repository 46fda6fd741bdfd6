// A codebook as `<segment>.codebook`, beside the codes that are read with it. Segments of one codebook have one file by
// several names (hard links), so that it goes with the last of them.
//
//   offset size field
//   0      8    magic "MAXSIMCB"
//   8      4    formatVersion (1)
//   12     4    crc32c of bytes [16, 64)
//   16     8    hash of the content, as Codebook::hash
//   24     4    dim
//   28     4    centroids, 1..65536
//   32     4    groups of centroids
//   36     4    share, f32
//   40     4    token vectors of the index when it was fitted, at most 2^32 - 1
//   44     20   zero
//   64          sections, each padded with zeros to a multiple of 64:
//     centroids    i8  [centroids][dim], then 64 bytes of zeros
//     scales       f16 [centroids], likewise: component value = centroid * scale
//     groups       i8  [groups][dim], likewise
//     groupScales  f16 [groups], likewise
//     groupStarts  u32 [groups + 1]               group g has the centroids [groupStarts[g], groupStarts[g+1])
//     codewords    f32 [subspaces][16][width]     subspaces and their width by dim: kernels/refined_levels.h
#pragma once

#include "engine/codebook.h"

#include <cstdint>
#include <optional>
#include <string>

namespace maxsimd {

/// Makes `path` a durable file of this codebook: another name of the file `same` if that holds it undamaged, else a new
/// one. `same` may be empty or not exist.
void saveCodebook(const std::string& path, const Kernel& kernel, const Codebook& codebook, const std::string& same);

/// Nothing if there is no usable file with this content.
std::optional<Codebook> loadCodebook(const std::string& path, const Kernel& kernel, uint32_t dim, uint64_t hash);

/// Of the file that `saveCodebook` writes.
uint64_t codebookFileBytes(const Codebook& codebook);

}  // namespace maxsimd
