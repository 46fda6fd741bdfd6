#include "device/residents.h"

#include "files/error.h"

#include <dlfcn.h>

#include <algorithm>
#include <future>

namespace maxsimd {
namespace {

/// Rows are copied over so many bytes at a time.
constexpr size_t copyBytes = 8 << 20;
/// Chunks that tie with the last of the best.
constexpr uint32_t tiesMost = 4096;

void attempt(const char* failure) {
  if (failure != nullptr) throw Error(ErrorCode::noMemory, failure);
}

MatrixShape shapeOf(const Segment& segment) {
  const SegmentCounts counts = segment.counts();
  return {counts.rows, counts.chunks, segment.dim()};
}

}  // namespace

const DeviceLibrary& loadDeviceLibrary(const std::string& path) {
  // Never unloaded: what a device's driver keeps of it lives as long as the process.
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

Residents::Residents(const DeviceLibrary& library, uint32_t ordinal, uint64_t mostBytes, Clock::duration patience)
    : library_(library), patience_(patience) {
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

DeviceUse Residents::use() const {
  const std::lock_guard lock(mutex_);
  uint32_t segments = 0, coming = 0;
  for (const auto& [segment, place] : places_) {
    if (place.resident != nullptr) segments += 1;
    else if (place.again == Clock::time_point::max()) coming += 1;
  }
  return {most_, bytesTaken(), segments, coming, scored_, refusal_, failure_};
}

std::shared_ptr<const Resident> Residents::of(const std::shared_ptr<const Segment>& segment) {
  if (!segment->sealed()) return nullptr;
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (now < again_) return nullptr;
  Place& place = places_[segment.get()];
  // Another segment may lie where one lay that is gone.
  if (place.segment.lock() != segment) place = {segment, nullptr, 0, now, now};
  place.asked = now;
  if (place.resident != nullptr || now < place.again) return place.resident;
  place.again = Clock::time_point::max();
  making_->post([this, segment] { make(segment); });
  return nullptr;
}

bool Residents::makeRoom(uint64_t bytes) {
  std::erase_if(places_, [](const auto& entry) { return entry.second.segment.expired(); });
  if (bytes > most_) return false;
  const auto patient = Clock::now() - patience_;
  while (bytesTaken() + bytes > most_) {
    auto oldest = places_.end();
    for (auto place = places_.begin(); place != places_.end(); ++place) {
      if (place->second.resident == nullptr || place->second.asked > patient) continue;
      if (oldest == places_.end() || place->second.asked < oldest->second.asked) oldest = place;
    }
    if (oldest == places_.end()) return false;
    places_.erase(oldest);
  }
  return true;
}

void Residents::make(const std::shared_ptr<const Segment>& segment) {
  const MatrixShape shape = shapeOf(*segment);
  const uint64_t bytes = library_.matrixBytes(&shape);
  std::shared_ptr<const Resident> made;
  std::string refusal;
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!makeRoom(bytes)) throw Error(ErrorCode::noMemory, "no room for " + std::to_string(bytes) + " bytes");
      places_[segment.get()].bytes = bytes;
    }
    auto resident = std::make_shared<Resident>(library_, device_, *segment);
    fill(*resident, *segment);
    made = std::move(resident);
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  const std::lock_guard lock(mutex_);
  // Only this thread takes places away.
  Place& place = places_[segment.get()];
  place.resident = std::move(made);
  if (place.resident != nullptr) return;
  place.bytes = 0;
  place.again = Clock::now() + patience_;
  refusal_ = segment->path() + ": " + refusal;
}

void Residents::fill(const Resident& resident, const Segment& segment) {
  const auto mapping = segment.mappingInOrder();
  const uint32_t dim = segment.dim();
  std::vector<int8_t> vectors;
  std::vector<uint16_t> scales;
  std::vector<AbsentPart> absent;
  uint64_t filled = 0;
  const auto copy = [&] {
    attempt(library_.fill(resident.matrix_, filled, scales.size(), vectors.data(), scales.data()));
    filled += scales.size();
    vectors.clear();
    scales.clear();
  };
  for (uint32_t number = 0; number < segment.recordCount(); ++number) {
    if (stopping_) throw Error(ErrorCode::closed, "the engine is closed");
    segment.collectAbsent(number, absent);
    if (!absent.empty()) throw AbsentParts(std::move(absent));
    if (!segment.dataIntact(*mapping, number)) throw segment.unread(*mapping, number);
    const RecordView view = segment.view(*mapping, number);
    const uint32_t rows = segment.record(number).rows;
    vectors.insert(vectors.end(), view.vectors(), view.vectors() + size_t(rows) * dim);
    scales.insert(scales.end(), view.scales(), view.scales() + rows);
    if (vectors.size() >= copyBytes) copy();
  }
  copy();
  // A page that could not be read is zeros.
  segment.requireRead(*mapping);
}

std::optional<std::vector<DeviceScored>> Residents::best(std::span<const Scan> scans, const DeviceQuery& query, uint32_t k) {
  std::vector<DeviceScan> there;
  for (const Scan& scan : scans) there.push_back({scan.resident->matrix_, scan.admitted.data()});
  std::vector<DeviceScored> scored(k + tiesMost);
  uint32_t found = 0;
  const char* failure = nullptr;
  {
    const std::lock_guard lock(searching_);
    failure = library_.best(device_, &query, there.data(), uint32_t(there.size()), k, uint32_t(scored.size()), scored.data(), &found);
  }
  {
    const std::lock_guard lock(mutex_);
    failure_ = failure == nullptr ? "" : failure;
    if (failure != nullptr) again_ = Clock::now() + patience_;
    else scored_ += scans.size();
  }
  if (failure != nullptr) return std::nullopt;
  if (found > scored.size()) return std::nullopt;
  scored.resize(found);
  return scored;
}

void Residents::distrust() {
  const std::lock_guard lock(mutex_);
  failure_ = "its scores are not the CPU's";
  again_ = Clock::now() + patience_;
  for (auto& [segment, place] : places_) {
    if (place.resident == nullptr) continue;
    place.resident = nullptr;
    place.bytes = 0;
    place.again = again_;
  }
}

void Residents::settle() {
  std::promise<void> done;
  making_->post([&done] { done.set_value(); });
  done.get_future().wait();
}

}  // namespace maxsimd
