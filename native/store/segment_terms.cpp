// The terms of a segment's records: its postings, and the records that carry terms.
#include "store/segment.h"

#include "files/error.h"
#include "store/recent_terms.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <shared_mutex>

namespace maxsimd {
namespace {

constexpr uint32_t checkpointRecords = 256;

std::span<const Term> termsOf(const RecordView& view, uint32_t count) {
  return {reinterpret_cast<const Term*>(view.terms()), count};
}

/// Keeps those of the ascending `numbers` that are also in the longer, ascending list `other`. Steps double until they
/// pass the next number (galloping search: Bentley and Yao, Information Processing Letters 5, 1976), so this is fast both
/// for lists of equal length and for lists a thousand times as long.
void keepCommon(std::vector<uint32_t>& numbers, std::span<const uint32_t> other) {
  size_t kept = 0;
  for (const uint32_t number : numbers) {
    size_t step = 1;
    while (step < other.size() && other[step] < number) step *= 2;
    const auto reached = other.begin() + long(std::min(step + 1, other.size()));
    other = other.subspan(size_t(std::lower_bound(other.begin() + long(step / 2), reached, number) - other.begin()));
    if (other.empty()) break;
    if (other.front() == number) numbers[kept++] = number;
  }
  numbers.resize(kept);
}

}  // namespace

void Segment::buildPostings(const Checkpoint& checkpoint) {
  require(sealed(), "an active segment has no postings");
  const std::lock_guard lock(writing_);
  auto saved = SealedPostings::save(path(), identity(), collectPostings(checkpoint));
  const std::unique_lock exchange(postingsMutex_);
  sealedPostings_ = std::move(saved);
}

std::vector<Posting> Segment::collectPostings(const Checkpoint& checkpoint) const {
  const auto mapping = mappingInOrder();
  std::vector<Posting> postings;
  postings.reserve(termCount_);
  for (uint32_t r = 0; r < recordCount_; ++r) {
    if (r % checkpointRecords == 0) checkpoint();
    if (metaIntact(*mapping, r)) {
      for (const Term& term : termsOf(view(*mapping, r), records_[r].terms)) postings.push_back({term, r});
    } else if (lifespans_[r].alive()) {
      throw unread(*mapping, r);
    }
  }
  requireRead(*mapping);
  return postings;
}

bool Segment::visitLists(std::span<const Term> terms, uint32_t recordCount, const Checkpoint& checkpoint,
                         const VisitCarriers& visit) const {
  std::shared_ptr<const SealedPostings> sealed;
  std::shared_ptr<RecentTerms> recent;
  {
    const std::shared_lock lock(postingsMutex_);
    sealed = sealedPostings_;
    recent = recentTerms_;
  }
  if (recent != nullptr) {
    visitRecent(*recent, terms, recordCount, checkpoint, visit);
    return true;
  }
  if (sealed == nullptr) return false;
  const auto places = sealed->find(terms);
  bool usable = places.has_value();
  // One list at a time, because all lists together may be many times as long as the segment.
  for (size_t t = 0; t < terms.size() && usable; ++t) {
    if ((*places)[t] == SealedPostings::nowhere) {
      visit(t, {});
      continue;
    }
    checkpoint();
    auto records = sealed->records((*places)[t]);
    usable = records.has_value();
    if (!usable) break;
    records->erase(std::lower_bound(records->begin(), records->end(), recordCount), records->end());
    visit(t, std::move(*records));
  }
  if (usable) return true;
  const std::unique_lock lock(postingsMutex_);
  if (sealedPostings_ == sealed) sealedPostings_ = nullptr;
  return false;
}

void Segment::visitRecent(RecentTerms& recent, std::span<const Term> terms, uint32_t recordCount,
                          const Checkpoint& checkpoint, const VisitCarriers& visit) const {
  const auto mapping = this->mapping();
  const RecentTerms::TermsOf termsOfRecord = [&](uint32_t record) -> std::optional<std::span<const Term>> {
    if (record % checkpointRecords == 0) checkpoint();
    if (metaIntact(*mapping, record)) return termsOf(view(*mapping, record), records_[record].terms);
    requireRead(*mapping);
    checks_[record].fetch_or(dataBad, std::memory_order_relaxed);
    return std::nullopt;
  };
  const RecentTerms::Check check = [&] { requireRead(*mapping); };
  for (size_t t = 0; t < terms.size(); ++t) {
    const auto carries = [&](uint32_t record) {
      const auto all = termsOfRecord(record);
      return !all || std::find(all->begin(), all->end(), terms[t]) != all->end();
    };
    const std::vector<uint32_t> tagged = recent.find(terms[t], recordCount, termsOfRecord, check);
    bool goesOn = true;
    for (size_t first = 0; goesOn && first < std::max<size_t>(1, tagged.size()); first += checkpointRecords) {
      checkpoint();
      const auto part = std::span(tagged).subspan(first).first(std::min<size_t>(checkpointRecords, tagged.size() - first));
      std::vector<uint32_t> carriers;
      std::ranges::copy_if(part, std::back_inserter(carriers), carries);
      if (!carriers.empty()) check();
      goesOn = visit(t, std::move(carriers));
    }
  }
}

template <typename Body>
std::vector<uint32_t> Segment::readTerms(uint32_t recordCount, const Checkpoint& checkpoint, const Body& body) const {
  // Ask for all missing parts at once, not record by record.
  if (file_.parts() != nullptr) file_.parts()->require(0, fileBytes_);
  const auto mapping = mappingInOrder();
  std::vector<uint32_t> damaged;
  for (uint32_t r = 0; r < recordCount; ++r) {
    if (r % checkpointRecords == 0) checkpoint();
    if (!metaIntact(*mapping, r)) {
      requireRead(*mapping);
      checks_[r].fetch_or(dataBad, std::memory_order_relaxed);
      damaged.push_back(r);
      continue;
    }
    body(r, termsOf(view(*mapping, r), records_[r].terms));
  }
  requireRead(*mapping);
  return damaged;
}

std::vector<uint32_t> Segment::recordsCarrying(std::span<const Term> terms, uint32_t recordCount,
                                               const Checkpoint& checkpoint) const {
  std::vector<uint32_t> carrying;
  const auto damaged = readTerms(recordCount, checkpoint, [&](uint32_t record, std::span<const Term> all) {
    const auto carries = [&all](const Term& term) { return std::find(all.begin(), all.end(), term) != all.end(); };
    if (std::all_of(terms.begin(), terms.end(), carries)) carrying.push_back(record);
  });
  const auto middle = carrying.insert(carrying.end(), damaged.begin(), damaged.end());
  std::inplace_merge(carrying.begin(), middle, carrying.end());
  return carrying;
}

std::vector<uint32_t> Segment::visitCarriers(std::span<const Term> terms, uint32_t recordCount,
                                             const Checkpoint& checkpoint, const VisitCarriers& visit) const {
  const bool isRecent = !sealed();
  if (visitLists(terms, recordCount, checkpoint, visit))
    return isRecent ? damagedBelow(recordCount) : std::vector<uint32_t>();
  return readTerms(recordCount, checkpoint, [&](uint32_t record, std::span<const Term> all) {
    for (const Term& term : all) {
      const auto place = std::lower_bound(terms.begin(), terms.end(), term);
      if (place != terms.end() && *place == term) visit(size_t(place - terms.begin()), {record});
    }
  });
}

std::vector<uint32_t> Segment::recordsMatching(std::span<const Term> terms, uint32_t recordCount,
                                               const Checkpoint& checkpoint) const {
  std::vector<std::vector<uint32_t>> lists(terms.size());
  const bool known = visitLists(terms, recordCount, checkpoint, [&](size_t t, std::vector<uint32_t> records) {
    if (lists[t].empty()) lists[t] = std::move(records);
    else lists[t].insert(lists[t].end(), records.begin(), records.end());
    return true;
  });
  if (!known) return recordsCarrying(terms, recordCount, checkpoint);
  std::sort(lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<uint32_t> matching = std::move(lists.front());
  for (size_t t = 1; t < lists.size(); ++t) keepCommon(matching, lists[t]);
  return matching;
}

}  // namespace maxsimd
