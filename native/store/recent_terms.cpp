#include "store/recent_terms.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace maxsimd {
namespace {

constexpr size_t entriesLeast = 64;

}  // namespace

std::vector<uint32_t> RecentTerms::find(const Term& term, uint32_t recordCount, const TermsOf& termsOf,
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

uint32_t RecentTerms::tagOf(const Term& term) {
  uint32_t tag;
  std::memcpy(&tag, term.data(), sizeof tag);
  return tag;
}

/// Reads the records that are new.
void RecentTerms::read(uint32_t recordCount, const TermsOf& termsOf, const Check& check) {
  if (recordCount <= records_) return;
  try {
    for (; records_ < recordCount; ++records_) {
      const auto terms = termsOf(records_);
      if (!terms) unknown_.push_back(records_);
      else for (const Term& term : *terms) add(tagOf(term), records_);
    }
    check();
  } catch (...) {
    clear();
    throw;
  }
}

void RecentTerms::add(uint32_t tag, uint32_t record) {
  if (entries_.size() == heads_.size()) grow();
  entries_.push_back({tag, record, none});
  link(uint32_t(entries_.size() - 1));
}

void RecentTerms::link(uint32_t entry) {
  uint32_t& head = heads_[entries_[entry].tag & (heads_.size() - 1)];
  entries_[entry].next = head;
  head = entry;
}

void RecentTerms::grow() {
  const size_t size = std::max(entriesLeast, 2 * heads_.size());
  // It may pass the bound. The next that takes memory makes room.
  share_.count(size * (sizeof(Entry) + sizeof(uint32_t)));
  entries_.reserve(size);
  heads_.assign(size, none);
  for (uint32_t entry = 0; entry < entries_.size(); ++entry) link(entry);
}

void RecentTerms::clear() {
  entries_ = {};
  heads_ = {};
  unknown_ = {};
  records_ = 0;
  share_.count(0);
}

}  // namespace maxsimd
