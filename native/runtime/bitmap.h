// A set of chunks or records, one bit each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

class Bitmap {
 public:
  static constexpr uint32_t wordBits = 64;
  static constexpr size_t wordsFor(uint32_t bits) { return (uint64_t(bits) + wordBits - 1) / wordBits; }

  explicit Bitmap(uint32_t bits = 0) : bits_(bits), words_(wordsFor(bits), 0) {}
  /// Takes `wordsFor(bits)` words. Bits behind the end are left out.
  Bitmap(uint32_t bits, std::span<const uint64_t> words) : bits_(bits), words_(words.begin(), words.end()) { trim(); }

  uint32_t size() const { return bits_; }
  /// False for bits behind the end.
  bool test(uint32_t bit) const { return bit < bits_ && words_[bit / wordBits] >> (bit % wordBits) & 1; }
  void set(uint32_t bit) { words_[bit / wordBits] |= uint64_t(1) << (bit % wordBits); }
  void reset(uint32_t bit) { words_[bit / wordBits] &= ~(uint64_t(1) << (bit % wordBits)); }

  /// All words. Bits behind the end are 0.
  std::span<const uint64_t> words() const { return words_; }

  /// Bits [64 * number, 64 * number + 64), the first in the lowest place.
  uint64_t word(uint32_t number) const { return words_[number]; }

  /// `keep` intersects and `add` unites with a bitmap of the same size; `flip` complements.
  void keep(const Bitmap& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  }
  void add(const Bitmap& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  void flip() {
    for (uint64_t& word : words_) word = ~word;
    trim();
  }
  uint32_t count() const {
    uint32_t count = 0;
    for (const uint64_t word : words_) count += uint32_t(std::popcount(word));
    return count;
  }

  /// Grows with zeros.
  void resize(uint32_t bits) {
    bits_ = bits;
    words_.resize(wordsFor(bits), 0);
  }

  /// body(bit) for each bit set in [first, last), ascending; `first` is a multiple of `wordBits`.
  template <typename Body>
  void forEach(uint32_t first, uint32_t last, const Body& body) const {
    for (uint32_t start = first; start < last && start < bits_; start += wordBits) {
      uint64_t word = words_[start / wordBits];
      if (last - start < wordBits) word &= (uint64_t(1) << (last - start)) - 1;
      for (; word != 0; word &= word - 1) body(start + uint32_t(std::countr_zero(word)));
    }
  }

 private:
  void trim() {
    if (bits_ % wordBits != 0) words_.back() &= (uint64_t(1) << (bits_ % wordBits)) - 1;
  }

  uint32_t bits_;
  std::vector<uint64_t> words_;
};

}  // namespace maxsimd
