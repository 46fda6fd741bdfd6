#include "files/present_parts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace maxsimd {

AbsentParts::AbsentParts(std::vector<AbsentPart> parts)
    : Error(ErrorCode::absent, "a part of a file has not come yet"), parts_(std::move(parts)) {
  std::sort(parts_.begin(), parts_.end());
  parts_.erase(std::unique(parts_.begin(), parts_.end()), parts_.end());
}

PresentParts::PresentParts(uint64_t fileId, uint64_t fileBytes, uint64_t partBytes, std::span<const uint8_t> bits)
    : fileId_(fileId),
      partBytes_(partBytes),
      parts_((fileBytes + partBytes - 1) / partBytes),
      presence_(new std::atomic<uint8_t>[(parts_ + 7) / 8] {}),
      left_(parts_) {
  add(bits);
}

void PresentParts::add(std::span<const uint8_t> bits) {
  maxsimd::require(bits.size() == (parts_ + 7) / 8, "parts must have a bit for each part of the file");
  for (size_t place = 0; place < bits.size(); ++place) {
    const uint64_t parts = std::min<uint64_t>(8, parts_ - 8 * place);
    const auto come = uint8_t(bits[place] & ((1u << parts) - 1));
    const uint8_t before = presence_[place].fetch_or(come, std::memory_order_acq_rel);
    left_ -= uint64_t(std::popcount(uint8_t(come & ~before)));
  }
}

void PresentParts::collectAbsent(uint64_t offset, uint64_t bytes, std::vector<AbsentPart>& absent) const {
  if (left_ == 0 || bytes == 0) return;
  for (uint64_t part = offset / partBytes_; part <= (offset + bytes - 1) / partBytes_; ++part) {
    if (has(part)) continue;
    const AbsentPart missing{fileId_, uint32_t(part)};
    // Neighbouring records often lack the same part.
    if (absent.empty() || absent.back() != missing) absent.push_back(missing);
  }
}

void PresentParts::require(uint64_t offset, uint64_t bytes) const {
  std::vector<AbsentPart> absent;
  collectAbsent(offset, bytes, absent);
  if (!absent.empty()) throw AbsentParts(std::move(absent));
}

}  // namespace maxsimd
