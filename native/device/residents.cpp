#include "device/residents.h"

#include "files/error.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <future>

namespace maxsimd {
namespace {

/// Bytes of rows that are copied to the device at a time.
constexpr size_t copyBytes = 8 << 20;
/// Room for chunks that tie with the last of the best.
constexpr uint32_t tiesMost = 4096;

void attempt(const char* failure) {
  if (failure != nullptr) throw Error(ErrorCode::noMemory, failure);
}

MatrixShape shapeOf(const Segment& segment) {
  const SegmentCounts counts = segment.counts();
  return {counts.rows, counts.chunks, segment.shape().dim, segment.shape().bits};
}

/// Checked before room is made: the segment is complete and no record is known to be damaged.
void requireWhole(const Segment& segment) {
  std::vector<AbsentPart> absent;
  for (uint32_t number = 0; number < segment.recordCount(); ++number) {
    segment.collectAbsent(number, absent);
    if (!absent.empty()) throw AbsentParts(std::move(absent));
    if (segment.knownDamaged(number)) throw segment.unread(*segment.mapping(), number);
  }
}

}  // namespace

const DeviceLibrary& loadDeviceLibrary(const std::string& path) {
  // Never unloaded: the driver keeps state of it as long as the process lives.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error(ErrorCode::invalidArgument, dlerror());
  const auto entry = reinterpret_cast<DeviceLibraryEntry>(dlsym(handle, deviceLibrarySymbol));
  if (entry == nullptr || entry()->version != deviceLibraryVersion) {
    throw Error(ErrorCode::invalidArgument, path + " is not a device library of this version: build it anew");
  }
  return *entry();
}

Resident::Resident(const DeviceLibrary& library, void* device, const Segment& segment)
    : library_(library), shape_(shapeOf(segment)) {
  std::vector<uint64_t> starts{0};
  starts.reserve(size_t(shape_.chunks) + 1);
  for (uint32_t chunk = 0; chunk < shape_.chunks; ++chunk) starts.push_back(starts.back() + segment.chunkRows(chunk));
  attempt(library.create(device, &shape_, starts.data(), &matrix_));
}

Residents::Residents(const DeviceLibrary& library, uint32_t ordinal, uint64_t mostBytes, ResidentTimes times)
    : library_(library), times_(times) {
  if (const char* failure = library.open(ordinal, &info_, &device_)) {
    throw Error(ErrorCode::invalidArgument, "device " + std::to_string(ordinal) + ": " + failure);
  }
  most_ = mostBytes == 0 ? info_.memoryBytes / 2 : mostBytes;
  making_.emplace(1, 10);
}

Residents::~Residents() {
  stopping_ = true;
  making_.reset();
  places_.clear();
  library_.close(device_);
}

uint64_t Residents::bytesTaken() const {
  uint64_t bytes = 0;
  for (const auto& [segment, place] : places_) bytes += place.bytes;
  return bytes;
}

DeviceUse Residents::use() {
  const std::lock_guard lock(mutex_);
  uint32_t segments = 0, coming = 0;
  bool gone = false;
  for (const auto& [segment, place] : places_) {
    gone |= place.segment.expired();
    if (place.resident != nullptr) segments += 1;
    else if (place.again == Clock::time_point::max()) coming += 1;
  }
  if (gone) {
    making_->post([this] {
      Leaving leaving;
      const std::lock_guard later(mutex_);
      dropGone(leaving);
    });
  }
  return {most_, bytesTaken(), segments, coming, scored_, refusal_, failure_};
}

std::shared_ptr<const Resident> Residents::of(const std::shared_ptr<const Segment>& segment, bool wanted) {
  if (!segment->sealed()) return nullptr;
  const auto now = Clock::now();
  Leaving leaving;
  const std::lock_guard lock(mutex_);
  if (now < again_ || (!wanted && !places_.contains(segment.get()))) return nullptr;
  Place& place = places_[segment.get()];
  if (place.segment.lock() != segment) {
    // A new segment may have the address of one that is gone.
    leaving.push_back(std::move(place.resident));
    place = {segment, nullptr, 0, now, now};
  }
  place.asked = now;
  if (place.resident != nullptr || !wanted || now < place.again) return place.resident;
  place.again = Clock::time_point::max();
  making_->post([this, segment] { make(segment); });
  return nullptr;
}

void Residents::dropGone(Leaving& leaving) {
  std::erase_if(places_, [&leaving](auto& entry) {
    if (!entry.second.segment.expired()) return false;
    leaving.push_back(std::move(entry.second.resident));
    return true;
  });
}

bool Residents::makeRoom(uint64_t bytes, Leaving& leaving) {
  dropGone(leaving);
  const auto patient = Clock::now() - times_.patience;
  std::vector<std::map<const Segment*, Place>::iterator> idle;
  uint64_t taken = bytesTaken(), idleBytes = 0;
  for (auto place = places_.begin(); place != places_.end(); ++place) {
    if (place->second.resident == nullptr || place->second.asked > patient) continue;
    idle.push_back(place);
    idleBytes += place->second.bytes;
  }
  if (taken - idleBytes + bytes > most_) return false;
  std::sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) { return a->second.asked < b->second.asked; });
  for (auto oldest = idle.begin(); taken + bytes > most_; ++oldest) {
    taken -= (*oldest)->second.bytes;
    leaving.push_back(std::move((*oldest)->second.resident));
    places_.erase(*oldest);
  }
  return true;
}

void Residents::make(const std::shared_ptr<const Segment>& segment) {
  const MatrixShape shape = shapeOf(*segment);
  const uint64_t bytes = library_.matrixBytes(&shape);
  std::shared_ptr<const Resident> made;
  std::string refusal;
  try {
    requireWhole(*segment);
    {
      Leaving leaving;
      const std::lock_guard lock(mutex_);
      if (!makeRoom(bytes, leaving))
        throw Error(ErrorCode::noMemory, "no room for " + std::to_string(bytes) + " bytes");
      places_[segment.get()].bytes = bytes;
    }
    auto resident = std::make_shared<Resident>(library_, device_, *segment);
    fill(*resident, *segment);
    made = std::move(resident);
  } catch (const AbsentParts&) {
    // The segment is still being fetched. A later search asks again.
  } catch (const std::exception& error) {
    refusal = segment->path() + ": " + error.what();
  }
  const std::lock_guard lock(mutex_);
  // Only this thread removes places.
  Place& place = places_[segment.get()];
  place.resident = std::move(made);
  if (place.resident != nullptr) return;
  place.bytes = 0;
  place.again = Clock::now() + times_.patience;
  if (!refusal.empty()) refusal_ = refusal;
}

void Residents::fill(const Resident& resident, const Segment& segment) {
  const auto mapping = segment.mappingInOrder();
  const size_t rowBytes = segment.shape().bytes();
  std::vector<int8_t> vectors;
  std::vector<uint16_t> scales;
  uint64_t filled = 0;
  const auto copy = [&] {
    if (scales.empty()) return;
    attempt(library_.fill(resident.matrix_, filled, scales.size(), vectors.data(), scales.data()));
    filled += scales.size();
    vectors.clear();
    scales.clear();
  };
  for (uint32_t number = 0; number < segment.recordCount(); ++number) {
    if (stopping_) throw Error(ErrorCode::closed, "the engine is closed");
    if (!segment.dataIntact(*mapping, number)) throw segment.unread(*mapping, number);
    const RecordView view = segment.view(*mapping, number);
    const uint32_t rows = segment.record(number).rows;
    vectors.insert(vectors.end(), view.vectors(), view.vectors() + rows * rowBytes);
    scales.insert(scales.end(), view.scales(), view.scales() + rows);
    if (vectors.size() >= copyBytes) copy();
  }
  copy();
  // A page that could not be read is zeros.
  segment.requireRead(*mapping);
}

Residents::Request::Request(std::span<const Scan> asked, const DeviceQuery& asking)
    : vectors(asking.vectors, asking.vectors + size_t(asking.tokens) * asking.dim),
      scales(asking.scales, asking.scales + asking.tokens),
      offsets(asking.offsets, asking.offsets + asking.tokens),
      query{asking.dim, vectors.data(), scales.data(), offsets.data(), asking.tokens, asking.k},
      scored(asking.k + tiesMost),
      answer{scored.data(), uint32_t(scored.size()), 0} {
  for (const Scan& scan : asked) scans.push_back({scan.resident->matrix_, scan.admitted.data()});
}

bool Residents::Request::goesWith(const Request& other) const {
  const auto blocks = [](const DeviceQuery& of) { return (of.tokens + deviceTokens - 1) / deviceTokens; };
  return blocks(query) == blocks(other.query) &&
         std::equal(scans.begin(), scans.end(), other.scans.begin(), other.scans.end(),
                    [](const auto& a, const auto& b) { return a.matrix == b.matrix && a.admitted == b.admitted; });
}

void Residents::answerNext(std::unique_lock<std::mutex>& lock) {
  std::array<std::shared_ptr<Request>, deviceQueriesMost> requests;
  std::array<DeviceQuery, deviceQueriesMost> queries;
  std::array<DeviceAnswer, deviceQueriesMost> answers;
  uint32_t count = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && count < deviceQueriesMost;) {
    if (count > 0 && !requests[0]->goesWith(**next)) {
      ++next;
      continue;
    }
    queries[count] = (*next)->query;
    answers[count] = (*next)->answer;
    requests[count++] = std::move(*next);
    next = waiting_.erase(next);
  }
  const std::vector<DeviceScan>& scans = requests[0]->scans;
  isSearching_ = true;
  began_ = Clock::now();
  lock.unlock();
  const char* const failure =
      library_.best(device_, queries.data(), answers.data(), count, scans.data(), uint32_t(scans.size()));
  lock.lock();
  isSearching_ = false;
  for (uint32_t at = 0; at < count; ++at) {
    requests[at]->answer = answers[at];
    requests[at]->failure = failure;
    requests[at]->isAnswered = true;
  }
  searched_.notify_all();
}

std::optional<std::vector<DeviceScored>> Residents::best(std::span<const Scan> scans, const DeviceQuery& query) {
  const auto request = std::make_shared<Request>(scans, query);
  std::unique_lock lock(mutex_);
  waiting_.push_back(request);
  while (!request->isAnswered) {
    if (!isSearching_ && waiting_.front() == request) {
      answerNext(lock);
    } else if (!isSearching_) {
      searched_.wait(lock);
    } else if (searched_.wait_until(lock, began_ + times_.answer) == std::cv_status::timeout && isSearching_ &&
               Clock::now() >= began_ + times_.answer) {
      std::erase(waiting_, request);
      request->failure = "it does not answer";
      break;
    }
  }
  const auto now = Clock::now();
  if (request->failure != nullptr) {
    failure_ = request->failure;
    again_ = now + times_.patience;
    return std::nullopt;
  }
  scored_ += scans.size();
  // A search that began before another one failed does not clear its failure.
  if (now >= again_) failure_.clear();
  if (request->answer.found > request->answer.room) return std::nullopt;
  request->scored.resize(request->answer.found);
  return std::move(request->scored);
}

void Residents::distrust() {
  Leaving leaving;
  const std::lock_guard lock(mutex_);
  failure_ = "its scores are not the CPU's";
  again_ = Clock::now() + times_.patience;
  for (auto& [segment, place] : places_) {
    if (place.resident == nullptr) continue;
    leaving.push_back(std::move(place.resident));
    place.bytes = 0;
    place.again = again_;
  }
}

size_t Residents::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Residents::settle() {
  std::promise<void> done;
  making_->post([&done] { done.set_value(); });
  done.get_future().wait();
}

}  // namespace maxsimd
