// Which records carry a filter term: in memory while a segment is active, in its footer once it is sealed.
#pragma once

#include "store/format.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <vector>

namespace maxsimd {

using Term = std::array<uint8_t, termBytes>;

/// Ordered by term, so that a footer can be written straight from it. Not synchronised.
class ActivePostings {
 public:
  /// Records arrive in ascending order; a term given twice for one record counts once.
  void add(uint32_t record, const uint8_t* terms, uint32_t count) {
    for (uint32_t t = 0; t < count; ++t) {
      Term term;
      std::memcpy(term.data(), terms + size_t(t) * termBytes, termBytes);
      auto& records = byTerm_[term];
      if (records.empty() || records.back() != record) records.push_back(record);
    }
  }

  std::vector<uint32_t> find(const Term& term) const {
    const auto found = byTerm_.find(term);
    return found == byTerm_.end() ? std::vector<uint32_t>{} : found->second;
  }

  const std::map<Term, std::vector<uint32_t>>& terms() const { return byTerm_; }
  void clear() { byTerm_.clear(); }

 private:
  std::map<Term, std::vector<uint32_t>> byTerm_;
};

/// The three arrays of a footer (format.h), as they lie in the mapping.
struct SealedPostings {
  std::span<const Term> keys;
  std::span<const uint32_t> offsets;
  std::span<const uint32_t> records;

  std::vector<uint32_t> find(const Term& term) const;
};

}  // namespace maxsimd
