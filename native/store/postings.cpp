#include "store/postings.h"

#include "kernels/cache_lines.h"

#include <algorithm>
#include <utility>

namespace maxsimd {
namespace {

constexpr DerivedFormat postingsFormat{0x4f504d495358414dull /* "MAXSIMPO" */, 1, "postings"};

struct PostingsHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  uint64_t segmentId;
  uint32_t records;
  uint32_t terms;
  uint32_t postings;
  uint32_t footerCrc;
  uint32_t directoryCrc;
  uint8_t zero[20];
};
static_assert(sizeof(PostingsHeader) == 64);

/// Byte offsets of the sections, counted from the end of the header.
struct PostingsLayout {
  uint64_t termOffsets, termCrcs;
  /// The section after the directory.
  uint64_t postings;
  uint64_t bytes;

  PostingsLayout(uint64_t terms, uint64_t postingCount) {
    termOffsets = alignSection(terms * termBytes);
    termCrcs = termOffsets + alignSection((terms + 1) * 4);
    postings = termCrcs + alignSection(terms * 4);
    bytes = postings + alignSection(postingCount * 4);
  }
};

/// Reads the header. Returns what is wrong with it, or an empty string.
std::string readHeader(const File& file, uint64_t bytes, PostingsHeader& header) {
  const std::string damage = readDerivedHeader(file, bytes, postingsFormat, header);
  if (!damage.empty()) return damage;
  const uint64_t expected = sizeof header + PostingsLayout(header.terms, header.postings).bytes;
  return bytes == expected ? "" : "not as long as its header says";
}

/// Terms are hashes, spread evenly. So the place of one follows from its first bytes, up to the square root of the number
/// of terms, and from there up to that of the distance, and so on (interpolation search: Perl, Itai and Avni,
/// Communications of the ACM 21, 1978). Each step is taken for all terms before the next, so that the processor fetches the
/// lines of many at once.
constexpr int interpolations = 2;

uint64_t firstBytes(const Term& term) {
  uint64_t bytes = 0;
  for (size_t b = 0; b < sizeof bytes; ++b) bytes = bytes << 8 | term[b];
  return bytes;
}

/// The first key that is not less. Steps away from `place` double until they pass it.
std::span<const Term>::iterator lowerBoundNear(std::span<const Term> keys, size_t place, const Term& term) {
  auto at = keys.begin() + long(place);
  long step = 1;
  if (*at < term) {
    for (; step < keys.end() - at && at[step] < term; step *= 2) at += step;
    return std::lower_bound(at + 1, at + std::min<long>(step + 1, keys.end() - at), term);
  }
  for (; step <= at - keys.begin() && !(at[-step] < term); step *= 2) at -= step;
  return std::lower_bound(at - std::min<long>(step, at - keys.begin()), at, term);
}

}  // namespace

SealedPostings::SealedPostings(std::shared_ptr<const Mapping> mapping, uint32_t records)
    : mapping_(std::move(mapping)), records_(records) {}

/// Reads and checks the directory; false if it is damaged. The file has the length that the counts require.
bool SealedPostings::readDirectory(uint32_t terms, uint32_t postings, uint32_t crc) {
  const PostingsLayout layout(terms, postings);
  const auto body = mapping_->whole().subspan(sizeof(PostingsHeader));
  if (checksumOf(section<uint8_t>(body, 0, layout.postings)) != crc) return false;
  keys_ = section<Term>(body, 0, terms);
  offsets_ = section<uint32_t>(body, layout.termOffsets, size_t(terms) + 1);
  crcs_ = section<uint32_t>(body, layout.termCrcs, terms);
  postings_ = section<uint32_t>(body, layout.postings, postings);
  checked_ = std::make_unique<std::atomic<bool>[]>(terms);
  // The checksum shows that the directory was not damaged. A wrong offset would still lead outside the mapping.
  return offsets_.front() == 0 && offsets_.back() == postings && std::is_sorted(offsets_.begin(), offsets_.end());
}

std::shared_ptr<const SealedPostings> SealedPostings::open(const std::string& segmentPath,
                                                           const SegmentIdentity& owner) {
  try {
    const File file = File::openReadOnly(pathOf(segmentPath));
    const uint64_t bytes = file.size();
    PostingsHeader header;
    if (!readHeader(file, bytes, header).empty()) return nullptr;
    if (header.segmentId != owner.segmentId || header.records != owner.records || header.footerCrc != owner.footerCrc)
      return nullptr;
    std::shared_ptr<SealedPostings> opened(new SealedPostings(file.map(bytes), owner.records));
    const bool usable = opened->readDirectory(header.terms, header.postings, header.directoryCrc);
    return usable && !opened->mapping_->failure() ? opened : nullptr;
  } catch (const Error&) {
    return nullptr;
  }
}

std::shared_ptr<const SealedPostings> SealedPostings::save(const std::string& segmentPath, const SegmentIdentity& owner,
                                                           std::vector<Posting> postings) {
  std::sort(postings.begin(), postings.end());
  postings.erase(std::unique(postings.begin(), postings.end()), postings.end());
  if (postings.size() > UINT32_MAX) throw Error(ErrorCode::invalidArgument, "segment holds too many terms");
  const auto begins = [&postings](size_t p) { return p == 0 || postings[p].term != postings[p - 1].term; };
  size_t terms = 0;
  for (size_t p = 0; p < postings.size(); ++p) terms += begins(p);

  // Filled in place, because there may be as many terms as bytes of metadata allow.
  const PostingsLayout layout(terms, postings.size());
  std::vector<uint8_t> body(layout.bytes);
  auto* const keys = reinterpret_cast<Term*>(body.data());
  auto* const offsets = reinterpret_cast<uint32_t*>(body.data() + layout.termOffsets);
  auto* const crcs = reinterpret_cast<uint32_t*>(body.data() + layout.termCrcs);
  auto* const records = reinterpret_cast<uint32_t*>(body.data() + layout.postings);
  for (size_t p = 0, t = 0; p < postings.size(); ++p) {
    records[p] = postings[p].record;
    if (!begins(p)) continue;
    keys[t] = postings[p].term;
    offsets[t++] = uint32_t(p);
  }
  offsets[terms] = uint32_t(postings.size());
  for (size_t t = 0; t < terms; ++t)
    crcs[t] = checksumOf(std::span<const uint32_t>(records + offsets[t], records + offsets[t + 1]));
  PostingsHeader header{};
  header.segmentId = owner.segmentId;
  header.records = owner.records;
  header.terms = uint32_t(terms);
  header.postings = uint32_t(postings.size());
  header.footerCrc = owner.footerCrc;
  header.directoryCrc = crc32c(body.data(), layout.postings);
  saveDerived(pathOf(segmentPath), postingsFormat, header, {body});
  auto opened = open(segmentPath, owner);
  if (!opened) throw std::logic_error("this is a bug: postings just saved cannot be opened");
  return opened;
}

std::optional<std::span<const uint32_t>> SealedPostings::list(size_t term) const {
  const uint32_t first = offsets_[term], last = offsets_[term + 1];
  if (first > last || last > postings_.size()) return std::nullopt;
  return postings_.subspan(first, last - first);
}

bool SealedPostings::intact(size_t term, std::span<const uint32_t> records) const {
  return checksumOf(records) == crcs_[term] && std::is_sorted(records.begin(), records.end()) &&
         (records.empty() || records.back() < records_);
}

std::optional<std::vector<size_t>> SealedPostings::find(std::span<const Term> terms) const {
  if (keys_.empty()) return std::vector<size_t>(terms.size(), nowhere);
  const double last = double(keys_.size() - 1), perKey = double(keys_.size()) * 0x1p-64;
  std::vector<size_t> places;
  const auto guess = [&](double place) {
    places.push_back(size_t(std::clamp(place, 0.0, last)));
    loadLines(keys_[places.back()]);
  };
  for (const Term& term : terms) guess(double(firstBytes(term)) * perKey);
  for (int step = 0; step < interpolations; ++step) {
    const std::vector<size_t> before = std::exchange(places, {});
    for (size_t t = 0; t < terms.size(); ++t) {
      const double ahead = double(firstBytes(terms[t])) - double(firstBytes(keys_[before[t]]));
      guess(double(before[t]) + ahead * perKey);
    }
  }
  for (size_t t = 0; t < terms.size(); ++t) {
    const auto found = lowerBoundNear(keys_, places[t], terms[t]);
    places[t] = found != keys_.end() && *found == terms[t] ? size_t(found - keys_.begin()) : nowhere;
  }
  if (mapping_->failure()) return std::nullopt;
  return places;
}

std::optional<std::vector<uint32_t>> SealedPostings::records(size_t place) const {
  const auto records = list(place);
  if (!records) return std::nullopt;
  if (!checked_[place].load(std::memory_order_relaxed)) {
    if (!intact(place, *records)) return std::nullopt;
    checked_[place].store(true, std::memory_order_relaxed);
  }
  std::vector<uint32_t> carrying(records->begin(), records->end());
  if (mapping_->failure()) return std::nullopt;
  return carrying;
}

PostingsInspection inspectPostings(const std::string& path, bool verify) {
  const File file = File::openReadOnly(path);
  const uint64_t bytes = file.size();
  PostingsHeader header;
  if (auto damage = readHeader(file, bytes, header); !damage.empty()) return {0, 0, damage};
  PostingsInspection found{header.terms, header.postings, ""};
  if (!verify) return found;
  SealedPostings postings(file.map(bytes), header.records);
  if (!postings.readDirectory(header.terms, header.postings, header.directoryCrc)) {
    found.damage = "damaged directory";
    return found;
  }
  for (size_t t = 0; t < header.terms && found.damage.empty(); ++t) {
    const auto records = postings.list(t);
    if (!records || !postings.intact(t, *records)) found.damage = "damaged";
  }
  if (postings.mapping_->failure()) found.damage = "cannot be read";
  return found;
}

}  // namespace maxsimd
