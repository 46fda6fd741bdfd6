// Copies of segments in device memory. A search scores all chunks of such a segment there, exactly.
//
// A copy is made in the background when a search finds a sealed segment without one. It is kept until another copy
// needs the room and no search has used it for a while. No search waits for a copy: without one it takes the usual way.
// So the device only adds speed. When it fails, nothing is lost; it is left alone for a while and then tried again.
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
  /// Copies in use, and copies that are being made.
  uint32_t segments, coming;
  /// How many segments searches have scored on the device.
  uint64_t scored;
  /// Why the last copy failed; empty = none did.
  std::string refusal;
  /// Why the last search on the device failed; empty = it did not.
  std::string failure;
};

struct ResidentTimes {
  /// How long a copy keeps its room after a search, and how long to wait before a failed copy or a failed device is
  /// tried again.
  Clock::duration patience = std::chrono::seconds(60);
  /// A search waits no longer than this for the device, which scores 80 GB in 25 ms.
  Clock::duration answer = std::chrono::seconds(1);
};

class Residents {
 public:
  /// `mostBytes` = 0: half of the device's memory. `invalid_argument` if there is no such device.
  Residents(const DeviceLibrary& library, uint32_t ordinal, uint64_t mostBytes, ResidentTimes times = {});
  ~Residents();

  const DeviceInfo& device() const { return info_; }
  /// Also removes copies of segments that no longer exist.
  DeviceUse use();

  /// The segment's copy, or null. If there is none, the segment is sealed and `wanted` is set, one is made.
  std::shared_ptr<const Resident> of(const std::shared_ptr<const Segment>& segment, bool wanted);

  struct Scan {
    std::shared_ptr<const Resident> resident;
    /// Words of a bitmap of its chunks.
    std::span<const uint64_t> admitted;
  };
  /// The best admitted chunks of all scans and those that tie with the last of them, in any order. `nullopt` if the
  /// device fails, or if too many chunks tie. Queries of the same chunks that wait together share one call.
  std::optional<std::vector<DeviceScored>> best(std::span<const Scan> scans, const DeviceQuery& query);
  /// The device gave a wrong result. It is left alone for a while, and all copies are removed.
  void distrust();
  /// Waits until no copy is being made. For tests and benchmarks.
  void settle();
  /// Searches that wait for the one on the device. For tests.
  size_t waiting();

 private:
  struct Place {
    /// Expired once the segment was closed or merged away: its room is free.
    std::weak_ptr<const Segment> segment;
    /// Null while the copy is being made, and after it failed.
    std::shared_ptr<const Resident> resident;
    uint64_t bytes;
    Clock::time_point asked;
    /// Not tried again before this time.
    Clock::time_point again;
  };

  /// A search's request to the device, and its answer. The thread that sends it shares it, because the search may give
  /// up.
  struct Request {
    Request(std::span<const Scan> asked, const DeviceQuery& asking);
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    /// Whether one call can answer both at the cost of one each.
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

  /// Sends the first waiting request to the device, with those that go with it.
  void answerNext(std::unique_lock<std::mutex>& lock);

  /// Copies to be removed. The caller destroys them after it has released the lock, because destroying one waits for
  /// the device.
  using Leaving = std::vector<std::shared_ptr<const Resident>>;

  void make(const std::shared_ptr<const Segment>& segment);
  /// Copies the segment's rows to the device. `UnreadRecord` if a record is damaged.
  void fill(const Resident& resident, const Segment& segment);
  /// Makes room for `bytes` by removing copies that no search used lately. False if that is not enough; then none is
  /// removed.
  bool makeRoom(uint64_t bytes, Leaving& leaving);
  /// Removes the copies of segments that no longer exist.
  void dropGone(Leaving& leaving);
  uint64_t bytesTaken() const;

  const DeviceLibrary& library_;
  DeviceInfo info_{};
  void* device_ = nullptr;
  uint64_t most_;
  const ResidentTimes times_;
  std::mutex mutex_;
  /// Whether a call is on the device (one at a time), and since when.
  bool isSearching_ = false;
  Clock::time_point began_;
  std::condition_variable searched_;
  std::deque<std::shared_ptr<Request>> waiting_;
  std::map<const Segment*, Place> places_;
  uint64_t scored_ = 0;
  std::string refusal_, failure_;
  /// The device is not used before this time.
  Clock::time_point again_ = Clock::time_point::min();
  std::atomic<bool> stopping_{false};
  std::optional<Pool> making_;
};

}  // namespace maxsimd
