#include "files/mapping.h"

#include "files/error.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

namespace maxsimd {

/// One living mapping, as the signal handler sees it. The handler takes no lock. It skips a slot whose version is odd
/// or changes while it is read. That slot cannot be the one it looks for: the thread that faulted keeps its own mapping
/// alive.
struct MappingSlot {
  std::atomic<uint32_t> version{0};
  std::atomic<uintptr_t> begin{0};
  /// End of the last page.
  std::atomic<uintptr_t> end{0};
  /// The address of the first read that failed; 0 = none.
  std::atomic<uintptr_t> failedAt{0};

  void set(uintptr_t first, uintptr_t last) {
    ++version;
    begin = first;
    end = last;
    failedAt = 0;
    ++version;
  }
};

namespace {

/// Slots are reused and never freed.
struct Block {
  std::array<MappingSlot, 256> slots;
  Block* next;
};
static_assert(std::atomic<Block*>::is_always_lock_free && std::atomic<uintptr_t>::is_always_lock_free);

std::atomic<Block*> blocks{nullptr};
struct sigaction previousAction;

uintptr_t pageBytes() {
  static const auto bytes = uintptr_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

struct Slots {
  std::mutex mutex;
  std::vector<MappingSlot*> free;
};

/// Outlives every mapping.
Slots& slots() {
  static auto* const all = new Slots;
  return *all;
}

MappingSlot* takeSlot() {
  Slots& all = slots();
  const std::lock_guard lock(all.mutex);
  if (all.free.empty()) {
    auto* const block = new Block{{}, blocks.load()};
    for (MappingSlot& slot : block->slots) all.free.push_back(&slot);
    blocks = block;
  }
  MappingSlot* const slot = all.free.back();
  all.free.pop_back();
  return slot;
}

void giveBack(MappingSlot* slot) {
  slot->set(0, 0);
  Slots& all = slots();
  const std::lock_guard lock(all.mutex);
  all.free.push_back(slot);
}

MappingSlot* find(uintptr_t address) {
  for (Block* block = blocks; block != nullptr; block = block->next) {
    for (MappingSlot& slot : block->slots) {
      const uint32_t version = slot.version;
      if (version % 2 == 0 && slot.begin <= address && address < slot.end && slot.version == version) return &slot;
    }
  }
  return nullptr;
}

bool mapZeros(uintptr_t begin, uintptr_t bytes) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#if defined(__linux__)
  // A direct system call. The thread sanitizer would take the C library's mmap for a write that races with readers.
  return syscall(SYS_mmap, begin, bytes, PROT_READ, flags, -1, 0) == long(begin);
#else
  return mmap(reinterpret_cast<void*>(begin), bytes, PROT_READ, flags, -1, 0) != MAP_FAILED;
#endif
}

/// Maps zeros over the mapping that has this address. False if there is none.
bool putZeros(uintptr_t address) {
  MappingSlot* const slot = find(address);
  if (slot == nullptr) return false;
  uintptr_t none = 0;
  // Set before the zeros appear, so that no reader sees zeros without the mark.
  slot->failedAt.compare_exchange_strong(none, address);
  // All of it in one call, so that the number of mappings stays within the system's limit.
  return mapZeros(slot->begin, slot->end - slot->begin);
}

void passOn(int signal, siginfo_t* info, void* context) {
  if ((previousAction.sa_flags & SA_SIGINFO) != 0) {
    previousAction.sa_sigaction(signal, info, context);
  } else if (previousAction.sa_handler != SIG_DFL && previousAction.sa_handler != SIG_IGN) {
    previousAction.sa_handler(signal);
  } else {
    // The failed read is repeated, or the signal is raised again, without this handler.
    sigaction(signal, &previousAction, nullptr);
    if (info->si_code <= 0) raise(signal);
  }
}

void onBusError(int signal, siginfo_t* info, void* context) {
  const int before = errno;
  // A signal that another process sent has no address.
  const bool ours = info->si_code > 0 && putZeros(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = before;
  if (!ours) passOn(signal, info, context);
}

void installHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, nullptr, &previousAction);
    if (sigaction(SIGBUS, &action, nullptr) != 0) throw Error::fromErrno("sigaction");
  });
}

}  // namespace

PageRange::PageRange(uint64_t from, uint64_t length)
    : offset(from & ~uint64_t(pageBytes() - 1)),
      bytes(((from + length + pageBytes() - 1) & ~uint64_t(pageBytes() - 1)) - offset) {}

Mapping::Mapping(int descriptor, uint64_t bytes) : slot_(takeSlot()), bytes_(bytes) {
  try {
    installHandler();
    void* const address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) throw Error::fromErrno("mmap");
    base_ = static_cast<const uint8_t*>(address);
  } catch (...) {
    giveBack(slot_);
    throw;
  }
  const auto begin = reinterpret_cast<uintptr_t>(base_);
  slot_->set(begin, begin + PageRange(0, bytes).bytes);
}

Mapping::~Mapping() {
  // Before another mapping can get these addresses.
  giveBack(slot_);
  munmap(const_cast<uint8_t*>(base_), bytes_);
}

std::optional<uint64_t> Mapping::failure() const {
  // Adds nothing, but orders all earlier reads before it.
  const uintptr_t at = slot_->failedAt.fetch_add(0, std::memory_order_acq_rel);
  if (at == 0) return std::nullopt;
  return at - reinterpret_cast<uintptr_t>(base_);
}

void Mapping::expectScattered(bool scattered) const {
  if (failure()) return;
  madvise(const_cast<uint8_t*>(base_), bytes_, scattered ? MADV_RANDOM : MADV_NORMAL);
}

bool Mapping::lock() const {
#if defined(__linux__)
  if (mlock2(base_, bytes_, MLOCK_ONFAULT) != 0) return false;
  // Scattered reads of much memory wait for address translation (docs/benchmarks.md, "Large pages"). File systems
  // without large pages ignore this advice. Only locked memory gets it, because other pages come and go one by one.
  madvise(const_cast<uint8_t*>(base_), bytes_, MADV_HUGEPAGE);
  return true;
#else
  return false;
#endif
}

void Mapping::unlock() const {
#if defined(__linux__)
  munlock(base_, bytes_);
  // From here on a read brings in its own page only.
  madvise(const_cast<uint8_t*>(base_), bytes_, MADV_NOHUGEPAGE);
#endif
}

void Mapping::release(uint64_t offset, uint64_t bytes) const {
  const PageRange pages(offset, bytes);
  if (failure()) return;
  madvise(const_cast<uint8_t*>(base_) + pages.offset, pages.bytes, MADV_DONTNEED);
}

}  // namespace maxsimd
