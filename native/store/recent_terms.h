// Finds records of an active segment by their terms, as postings do in a sealed one.
//
// A hash table with chains, whose keys are the first bytes of each term: terms are hashes already. They say which records
// may carry a term, and these have to be read. The table takes 16 to 32 bytes a term. It is made when it is first asked,
// so that a segment that is only written takes none of this, and grows with the next question.
#pragma once

#include "files/memory.h"
#include "store/postings.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace maxsimd {

class RecentTerms {
 public:
  explicit RecentTerms(MemoryOwner owner) : share_(std::move(owner)) {}

  /// The terms of a record; `nullopt` if they cannot be told now.
  using TermsOf = std::function<std::optional<std::span<const Term>>(uint32_t)>;
  /// Throws if something that `TermsOf` returned may be wrong.
  using Check = std::function<void()>;

  /// The records below `recordCount` that may carry the term, ascending. A record whose terms could not be told may carry
  /// any.
  std::vector<uint32_t> find(const Term& term, uint32_t recordCount, const TermsOf& termsOf, const Check& check);

 private:
  struct Entry {
    uint32_t tag;
    uint32_t record;
    /// The next entry of the chain; `none` at its end. Newer entries come first.
    uint32_t next;
  };

  static constexpr uint32_t none = UINT32_MAX;

  static uint32_t tagOf(const Term& term);
  void read(uint32_t recordCount, const TermsOf& termsOf, const Check& check);
  void add(uint32_t tag, uint32_t record);
  void link(uint32_t entry);
  void grow();
  void clear();

  std::mutex mutex_;
  MemoryShare share_;
  /// How many records have been read.
  uint32_t records_ = 0;
  /// Of these, the ones whose terms could not be told.
  std::vector<uint32_t> unknown_;
  std::vector<Entry> entries_;
  /// The newest entry of each chain. There is a power of two of them.
  std::vector<uint32_t> heads_;
};

}  // namespace maxsimd
