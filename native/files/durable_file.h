// Whole files that appear at once or not at all: written beside their place, synced, renamed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// `path` is a file with `parts` one after the other, durably, whatever was there before. A failure leaves what was
/// there, a crash perhaps `path`.tmp too.
void replaceDurably(const std::string& path, const std::vector<std::span<const uint8_t>>& parts);

}  // namespace maxsimd
