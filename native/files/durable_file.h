// Whole files that appear at once or not at all: written beside their place, synced, renamed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace maxsimd {

/// `path` is a file with `parts` one after the other, durably, whatever was there before. A failure leaves what was
/// there, a crash perhaps `path`.tmp too.
void replaceDurably(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts);

}  // namespace maxsimd
