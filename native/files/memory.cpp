#include "files/memory.h"

#include "files/error.h"

#include <algorithm>
#include <string>

namespace maxsimd {

Memory& Memory::ofProcess() {
  // Never destroyed, so that it outlives everything that uses it.
  static auto* const memory = new Memory;
  return *memory;
}

void Memory::bound(uint64_t most) {
  const std::lock_guard lock(mutex_);
  most_ = most;
  settle();
}

void Memory::take(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (taken_ > most_ || bytes > most_ - taken_) {
    throw Error(ErrorCode::noMemory, "no room for " + std::to_string(bytes) + " bytes beside " +
                                         std::to_string(taken_) + " of " + std::to_string(most_));
  }
  taken_ += bytes;
  if (held_ > most_ - taken_) settle();
}

void Memory::giveBack(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_ -= bytes;
  settle();
}

void Memory::hold(const Mapping& mapping) {
  const std::lock_guard lock(mutex_);
  codes_.push_back({&mapping, false, false});
  settle();
}

void Memory::letGo(const Mapping& mapping) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(codes_.begin(), codes_.end(), [&](const Codes& c) { return c.mapping == &mapping; });
  if (found->held) held_ -= mapping.bytes();
  codes_.erase(found);
  settle();
}

void Memory::settle() {
  const uint64_t room = most_ - std::min(most_, taken_);
  // The newest first: the older ones fitted before it came.
  for (auto each = codes_.rbegin(); each != codes_.rend() && held_ > room; ++each) {
    if (!each->held) continue;
    each->mapping->unlock();
    each->held = false;
    held_ -= each->mapping->bytes();
  }
  for (Codes& each : codes_) {
    if (each.held) continue;
    const bool scattered = each.mapping->bytes() > room - held_;
    // Locked pages stay, so reading ahead fills them sooner.
    if (scattered != each.scattered) each.mapping->expectScattered(each.scattered = scattered);
    if (scattered) continue;
    // The system's own limit is reached. The next one would fail, too.
    if (!each.mapping->lock()) return;
    each.held = true;
    held_ += each.mapping->bytes();
  }
}

MemoryUse Memory::use() const {
  const std::lock_guard lock(mutex_);
  MemoryUse use{most_, taken_, 0, held_};
  for (const Codes& each : codes_) use.codes += each.mapping->bytes();
  return use;
}

}  // namespace maxsimd
