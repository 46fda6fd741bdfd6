// Segments whose token matrices lie in device memory, too, where a search scores all of their chunks exactly.
//
// A copy is made in the background when a search finds a sealed segment without one, and lives until its room is wanted for another and
// no search has asked for it for a while. Nobody waits for one: a search that finds none goes on without. So the device only ever adds
// to what there is, and when it fails, nothing is lost with it: it is left alone for a while and tried again.
#pragma once

#include "device/library.h"
#include "runtime/deadline.h"
#include "runtime/pool.h"
#include "store/segment.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// `invalid_argument` if it cannot be loaded or is of another version.
const DeviceLibrary& loadDeviceLibrary(const std::string& path);

/// The copy of one segment.
class Resident {
 public:
  Resident(const DeviceLibrary& library, void* device, const Segment& segment);
  ~Resident() { library_.destroy(matrix_); }
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;

  uint32_t chunks() const { return shape_.chunks; }

 private:
  friend class Residents;

  const DeviceLibrary& library_;
  const MatrixShape shape_;
  void* matrix_ = nullptr;
};

struct DeviceUse {
  uint64_t mostBytes, bytes;
  /// There, and on their way there.
  uint32_t segments, coming;
  /// Segments that searches scored there.
  uint64_t scored;
  /// Why the last copy that could not be made was not; empty = none.
  std::string refusal;
  /// Why the last search of the device failed; empty = it did not.
  std::string failure;
};

class Residents {
 public:
  /// `mostBytes` = 0: half of the device's memory. `patience`: how long a copy keeps its room after a search, and how long a segment
  /// that got none, and a device that failed, go without another try. `invalid_argument` if there is no such device.
  Residents(const DeviceLibrary& library, uint32_t ordinal, uint64_t mostBytes,
            Clock::duration patience = std::chrono::seconds(60));
  ~Residents();

  const DeviceInfo& device() const { return info_; }
  /// Has the copies of segments that are gone go, too.
  DeviceUse use();

  /// Its copy; null if there is none, which is then made if it is wanted and the segment is sealed.
  std::shared_ptr<const Resident> of(const std::shared_ptr<const Segment>& segment, bool wanted);

  struct Scan {
    std::shared_ptr<const Resident> resident;
    /// Words of a bitmap of its chunks.
    std::span<const uint64_t> admitted;
  };
  /// The best of the admitted chunks of all scans and those that tie with the last of them, in any order. Nothing if the device
  /// fails, or if so many tie that whoever asks had better choose. Queries of the same chunks that wait for the device go there together.
  std::optional<std::vector<DeviceScored>> best(std::span<const Scan> scans, const DeviceQuery& query);
  /// What it gave is wrong: it is left alone for a while, and the copies that are there go.
  void distrust();
  /// Until no copy is being made: for tests and benchmarks.
  void settle();

 private:
  struct Place {
    /// Gone with its index or merged away: its room is free.
    std::weak_ptr<const Segment> segment;
    /// Null while the copy is being made, and when it could not be.
    std::shared_ptr<const Resident> resident;
    uint64_t bytes;
    Clock::time_point asked;
    /// Not before this time again.
    Clock::time_point again;
  };

  /// What a search asks of the device, and the answer. Whoever brings it there holds it, for the search may have given up.
  struct Request {
    Request(std::span<const Scan> asked, const DeviceQuery& asking);
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    /// Whether both can be answered by one call, at the cost of each.
    bool goesWith(const Request& other) const;

    std::vector<DeviceScan> scans;
    std::vector<int8_t> vectors;
    std::vector<float> scales, offsets;
    DeviceQuery query;
    std::vector<DeviceScored> scored;
    DeviceAnswer answer;
    bool isAnswered = false;
    const char* failure = nullptr;
  };

  /// Brings the first that waits to the device, with those that go with it.
  void answerNext(std::unique_lock<std::mutex>& lock);

  /// Copies that go: whoever takes them away holds them until the lock is released, for that waits for the device.
  using Leaving = std::vector<std::shared_ptr<const Resident>>;

  void make(const std::shared_ptr<const Segment>& segment);
  /// Copies its rows there; `UnreadRecord` if a record is damaged.
  void fill(const Resident& resident, const Segment& segment);
  /// Whether there is room for so many bytes, once those that nobody asked for lately have gone. None goes if that is not enough.
  bool makeRoom(uint64_t bytes, Leaving& leaving);
  /// Copies of segments that are gone with their index, or merged away.
  void dropGone(Leaving& leaving);
  uint64_t bytesTaken() const;

  const DeviceLibrary& library_;
  DeviceInfo info_{};
  void* device_ = nullptr;
  uint64_t most_;
  const Clock::duration patience_;
  std::mutex mutex_;
  /// One call at a time is on the device, and since when.
  bool isSearching_ = false;
  Clock::time_point began_;
  std::condition_variable searched_;
  std::deque<std::shared_ptr<Request>> waiting_;
  std::map<const Segment*, Place> places_;
  uint64_t scored_ = 0;
  std::string refusal_, failure_;
  /// Nobody asks for copies before.
  Clock::time_point again_ = Clock::time_point::min();
  std::atomic<bool> stopping_{false};
  std::optional<Pool> making_;
};

}  // namespace maxsimd
