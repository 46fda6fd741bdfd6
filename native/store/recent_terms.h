// Finds records of an active segment by their terms, as postings do in a sealed one.
//
// A hash table with chains, whose keys are the first bytes of each term: terms are hashes already. They say which records
// may carry a term, and these have to be read. The table takes 16 to 32 bytes a term. It is made when it is first asked,
// so that a segment that is only written takes none of this, and grows with the next question.
#pragma once

#include "files/memory.h"
#include "store/postings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
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
  static constexpr size_t entriesLeast = 64;

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
  /// The ones among them whose terms could not be told.
  std::vector<uint32_t> unknown_;
  std::vector<Entry> entries_;
  /// The newest entry of each chain. There is a power of two of them.
  std::vector<uint32_t> heads_;
};

inline std::vector<uint32_t> RecentTerms::find(const Term& term, uint32_t recordCount, const TermsOf& termsOf,
                                               const Check& check) {
  const std::lock_guard lock(mutex_);
  read(recordCount, termsOf, check);
  const uint32_t tag = tagOf(term);
  std::vector<uint32_t> tagged;
  uint32_t entry = heads_.empty() ? none : heads_[tag & (heads_.size() - 1)];
  for (; entry != none; entry = entries_[entry].next) {
    if (entries_[entry].tag == tag) tagged.push_back(entries_[entry].record);
  }
  std::reverse(tagged.begin(), tagged.end());
  tagged.erase(std::unique(tagged.begin(), tagged.end()), tagged.end());
  std::vector<uint32_t> found;
  std::set_union(tagged.begin(), tagged.end(), unknown_.begin(), unknown_.end(), std::back_inserter(found));
  found.erase(std::lower_bound(found.begin(), found.end(), recordCount), found.end());
  return found;
}

inline uint32_t RecentTerms::tagOf(const Term& term) {
  uint32_t tag;
  std::memcpy(&tag, term.data(), sizeof tag);
  return tag;
}

/// Reads the records that are new.
inline void RecentTerms::read(uint32_t recordCount, const TermsOf& termsOf, const Check& check) {
  if (recordCount <= records_) return;
  try {
    for (; records_ < recordCount; ++records_) {
      const auto terms = termsOf(records_);
      if (!terms) unknown_.push_back(records_);
      else
        for (const Term& term : *terms) add(tagOf(term), records_);
    }
    check();
  } catch (...) {
    clear();
    throw;
  }
}

inline void RecentTerms::add(uint32_t tag, uint32_t record) {
  if (entries_.size() == heads_.size()) grow();
  entries_.push_back({tag, record, none});
  link(uint32_t(entries_.size() - 1));
}

inline void RecentTerms::link(uint32_t entry) {
  uint32_t& head = heads_[entries_[entry].tag & (heads_.size() - 1)];
  entries_[entry].next = head;
  head = entry;
}

inline void RecentTerms::grow() {
  const size_t size = std::max(entriesLeast, 2 * heads_.size());
  // It may pass the bound. The next that takes memory makes room.
  share_.count(size * (sizeof(Entry) + sizeof(uint32_t)));
  entries_.reserve(size);
  heads_.assign(size, none);
  for (uint32_t entry = 0; entry < entries_.size(); ++entry) link(entry);
}

inline void RecentTerms::clear() {
  entries_ = {};
  heads_ = {};
  unknown_ = {};
  records_ = 0;
  share_.count(0);
}

}  // namespace maxsimd
