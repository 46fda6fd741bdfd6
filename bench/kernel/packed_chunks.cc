#include "contender.h"

namespace bench {

PackedChunks::PackedChunks(std::size_t alignment_bytes, const std::vector<std::size_t> &sizes) {
    std::size_t total = 0;
    offsets_.reserve(sizes.size());
    for (std::size_t size : sizes) {
        offsets_.push_back(total);
        total += (size + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    }
    bytes_ = total;
    // One vector of slack behind the end: kernels may read, never use, what follows the last chunk.
    storage_ = std::make_unique_for_overwrite<std::byte[]>(total + 2 * alignment_bytes);
    auto address = reinterpret_cast<std::uintptr_t>(storage_.get());
    base_ = storage_.get() + (alignment_bytes - address % alignment_bytes) % alignment_bytes;
}

} // namespace bench
