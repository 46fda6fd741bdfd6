#include "ring.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace research {
namespace {

std::atomic<uint32_t>& word(uint8_t* base, uint32_t offset) {
  return *reinterpret_cast<std::atomic<uint32_t>*>(base + offset);
}

}  // namespace

Ring::Ring() {
  io_uring_params params{};
  descriptor_ = int(syscall(SYS_io_uring_setup, entries, &params));
  if (descriptor_ < 0) return;
  const auto map = [this](size_t bytes, uint64_t offset) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, off_t(offset));
  };
  submissionBytes_ = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
  completionBytes_ = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  queueBytes_ = params.sq_entries * sizeof(io_uring_sqe);
  submissions_ = static_cast<uint8_t*>(map(submissionBytes_, IORING_OFF_SQ_RING));
  completions_ = static_cast<uint8_t*>(map(completionBytes_, IORING_OFF_CQ_RING));
  queue_ = map(queueBytes_, IORING_OFF_SQES);
  at_ = {params.sq_off.tail,  params.sq_off.ring_mask, params.sq_off.array, params.cq_off.head,
         params.cq_off.tail, params.cq_off.ring_mask, params.cq_off.cqes};
}

Ring::~Ring() {
  if (!usable()) return;
  munmap(submissions_, submissionBytes_);
  munmap(completions_, completionBytes_);
  munmap(queue_, queueBytes_);
  close(descriptor_);
}

bool Ring::readAll(int file, std::span<const Read> reads) {
  bool whole = true;
  while (!reads.empty()) {
    const auto count = uint32_t(std::min<size_t>(reads.size(), entries));
    const uint32_t mask = word(submissions_, at_.mask), tail = word(submissions_, at_.tail);
    auto* const array = reinterpret_cast<uint32_t*>(submissions_ + at_.array);
    auto* const queue = static_cast<io_uring_sqe*>(queue_);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t slot = (tail + i) & mask;
      io_uring_sqe& entry = queue[slot];
      entry = {};
      entry.opcode = IORING_OP_READ;
      entry.fd = file;
      entry.addr = reinterpret_cast<uint64_t>(reads[i].to);
      entry.len = reads[i].bytes;
      entry.off = reads[i].offset;
      entry.user_data = reads[i].bytes;
      array[slot] = slot;
    }
    word(submissions_, at_.tail).store(tail + count, std::memory_order_release);
    uint32_t submitted = 0, done = 0;
    while (done < count) {
      const long got = syscall(SYS_io_uring_enter, descriptor_, count - submitted, count - done, IORING_ENTER_GETEVENTS,
                               nullptr, 0);
      if (got < 0) return false;
      submitted += uint32_t(got);
      uint32_t head = word(completions_, at_.completedHead);
      const uint32_t end = word(completions_, at_.completedTail).load(std::memory_order_acquire);
      const uint32_t completedMask = word(completions_, at_.completedMask);
      const auto* const events = reinterpret_cast<const io_uring_cqe*>(completions_ + at_.events);
      for (; head != end; ++head, ++done) {
        const io_uring_cqe& event = events[head & completedMask];
        whole &= event.res == int32_t(event.user_data);
      }
      word(completions_, at_.completedHead).store(head, std::memory_order_release);
    }
    reads = reads.subspan(count);
  }
  return whole;
}

}  // namespace research
