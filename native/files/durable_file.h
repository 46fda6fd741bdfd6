// Files that are replaced as a whole: written beside their place, synced, then renamed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// Writes `parts` one after the other to `path` and makes them durable. On failure the old file stays. After a crash
/// `path`.tmp may be left.
void replaceDurably(const std::string& path, const std::vector<std::span<const uint8_t>>& parts);

}  // namespace maxsimd
