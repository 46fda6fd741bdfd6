// Operating errors of the store and the engine, by what a caller can do about them. The binding passes `code` on as the
// JavaScript error's `code`.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace maxsimd {

enum class ErrorCode {
  invalidArgument,
  closed,
  io,
  noSpace,
  noMemory,
  corrupt,
  unsupportedVersion,
  deadlineExceeded,
  /// A condition needs metadata values that the engine does not have. The caller supplies them and tries again.
  valuesMissing,
  /// Bytes are needed that have not been fetched yet.
  absent,
};

constexpr const char* errorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalidArgument: return "invalid_argument";
    case ErrorCode::closed: return "closed";
    case ErrorCode::io: return "io";
    case ErrorCode::noSpace: return "no_space";
    case ErrorCode::noMemory: return "no_memory";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::unsupportedVersion: return "unsupported_version";
    case ErrorCode::deadlineExceeded: return "deadline_exceeded";
    case ErrorCode::valuesMissing: return "values_missing";
    case ErrorCode::absent: return "absent";
  }
  return "io";
}

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, int errnoValue = 0)
      : std::runtime_error(message), code_(code), errno_(errnoValue) {}

  ErrorCode code() const { return code_; }
  int errnoValue() const { return errno_; }

  /// From `errno`. A full disk or quota is `no_space`.
  static Error fromErrno(const std::string& what, int value = errno) {
    const bool full = value == ENOSPC || value == EDQUOT || value == EFBIG;
    return Error(full ? ErrorCode::noSpace : ErrorCode::io, what + ": " + std::strerror(value), value);
  }

 private:
  ErrorCode code_;
  int errno_;
};

/// A record that could not be read (`io`) or whose checksum is wrong (`corrupt`). The caller has it verified.
class UnreadRecord : public Error {
 public:
  UnreadRecord(ErrorCode code, const std::string& message, uint64_t segmentId, uint32_t record)
      : Error(code, message, code == ErrorCode::io ? EIO : 0), segmentId_(segmentId), record_(record) {}

  uint64_t segmentId() const { return segmentId_; }
  uint32_t record() const { return record_; }

 private:
  uint64_t segmentId_;
  uint32_t record_;
};

inline void require(bool condition, const char* message) {
  if (!condition) throw Error(ErrorCode::invalidArgument, message);
}

}  // namespace maxsimd
