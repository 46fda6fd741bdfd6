// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, reflected; RFC 3720 appendix B.4).
#pragma once

#include <cstddef>
#include <cstdint>

namespace maxsimd {

/// The CRC of `bytes` bytes, continued from `seed`; 0 starts a new one.
uint32_t crc32c(const void* data, size_t bytes, uint32_t seed = 0);

}  // namespace maxsimd
