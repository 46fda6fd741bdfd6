// Whole files that appear at once or not at all: written beside their place, synced, renamed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace maxsimd {

/// The file at `path` holds `parts`, one after the other, durably; whatever was there before is replaced. Nothing is
/// left behind on failure; a crash may leave `path`.tmp.
void replaceDurably(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts);

/// `path` becomes another name of the file `existing`, likewise. `false` where there is no such file, or the file
/// system has no links.
bool linkDurably(const std::string& existing, const std::string& path);

}  // namespace maxsimd
