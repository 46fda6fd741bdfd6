#include "files/memory.h"

#include "files/error.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace maxsimd {

Memory& Memory::ofProcess() {
  // Never destroyed, so that it outlives everything that uses it.
  static auto* const memory = new Memory;
  return *memory;
}

void Memory::bound(uint64_t most) {
  const std::lock_guard lock(mutex_);
  most_ = most;
  settle();
}

MemoryAccount::~MemoryAccount() { Memory::ofProcess().end(*this); }

MemoryOwner Memory::accountOf(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  for (MemoryAccount* const each : accounts_) {
    if (each->owner != owner) continue;
    // Null if its end waits for the mutex.
    if (MemoryOwner known = each->weak_from_this().lock()) return known;
  }
  auto made = std::make_shared<MemoryAccount>(owner);
  accounts_.push_back(made.get());
  return made;
}

void Memory::end(const MemoryAccount& account) {
  const std::lock_guard lock(mutex_);
  std::erase(accounts_, &account);
}

void Memory::offer(ReclaimOrder order, const std::shared_ptr<Reclaimable>& reclaimable) {
  const std::lock_guard lock(mutex_);
  // The ended ones are removed each time their number may have doubled.
  if (offers_.size() == offers_.capacity()) {
    std::erase_if(offers_, [](const Offer& offer) { return offer.reclaimable.expired(); });
    offers_.reserve(2 * offers_.size() + 1);
  }
  offers_.push_back({order, reclaimable});
}

void Memory::take(MemoryAccount& account, uint64_t bytes) {
  std::unique_lock lock(mutex_);
  if (!makeRoom(lock, account, bytes, {})) {
    throw Error(ErrorCode::noMemory, "no room for " + std::to_string(bytes) + " bytes beside " +
                                         std::to_string(account.taken_) + " of the tenant and " +
                                         std::to_string(taken_) + " of " + std::to_string(most_) + " in all");
  }
  taken_ += bytes;
  account.taken_ += bytes;
  if (taken_ > most_ || held_ > most_ - taken_) settle();
}

void Memory::count(MemoryAccount& account, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_ += bytes;
  account.taken_ += bytes;
  if (taken_ > most_ || held_ > most_ - taken_) settle();
}

bool Memory::makeRoom(const MemoryAccount& account, const MemoryNeed& need) {
  std::unique_lock lock(mutex_);
  return makeRoom(lock, account, 0, need);
}

bool Memory::makeRoom(std::unique_lock<std::mutex>& lock, const MemoryAccount& account, uint64_t bytes,
                      const MemoryNeed& need) {
  if (fits(bytes)) return true;
  std::vector<Candidate> all = candidates();
  while (!fits(bytes)) {
    Candidate* const first = firstOf(all, account, bytes);
    if (first == nullptr) break;
    first->isTried = true;
    lock.unlock();
    first->reclaimable->reclaim(need);
    lock.lock();
  }
  // The last reference to one of them may be here, and its end takes the mutex.
  lock.unlock();
  all.clear();
  lock.lock();
  return fits(bytes) || account.taken_ + bytes <= share();
}

Memory::Candidate* Memory::firstOf(std::vector<Candidate>& candidates, const MemoryAccount& account,
                                   uint64_t bytes) const {
  const uint64_t least = std::max(share() + 1, account.taken_ + bytes);
  Candidate* first = nullptr;
  using Rank = std::tuple<bool, uint64_t, uint64_t>;
  Rank best;
  for (Candidate& each : candidates) {
    const MemoryAccount& owner = *each.reclaimable->owner;
    const uint64_t use = owner.taken_ + (&owner == &account ? bytes : 0);
    const Rank rank(each.order == ReclaimOrder::columns, use, each.reclaimable->reclaimableBytes());
    if (each.isTried || use < least || std::get<2>(rank) == 0 || (first != nullptr && rank <= best)) continue;
    first = &each;
    best = rank;
  }
  return first;
}

std::vector<Memory::Candidate> Memory::candidates() const {
  std::vector<Candidate> candidates;
  for (const Offer& offer : offers_) {
    if (auto reclaimable = offer.reclaimable.lock()) candidates.push_back({offer.order, std::move(reclaimable), false});
  }
  return candidates;
}

void Memory::giveBack(MemoryAccount& account, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_ -= bytes;
  account.taken_ -= bytes;
  settle();
}

void Memory::hold(const Mapping& mapping) {
  const std::lock_guard lock(mutex_);
  codes_.push_back({&mapping, false, false});
  settle();
}

void Memory::letGo(const Mapping& mapping) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(codes_.begin(), codes_.end(), [&](const Codes& c) { return c.mapping == &mapping; });
  if (found->held) held_ -= mapping.bytes();
  codes_.erase(found);
  settle();
}

void Memory::settle() {
  const uint64_t room = most_ - std::min(most_, taken_);
  // The newest first: the older ones fitted before it came.
  for (auto each = codes_.rbegin(); each != codes_.rend() && held_ > room; ++each) {
    if (!each->held) continue;
    each->mapping->unlock();
    each->held = false;
    held_ -= each->mapping->bytes();
  }
  for (Codes& each : codes_) {
    if (each.held) continue;
    const bool scattered = each.mapping->bytes() > room - held_;
    // Locked pages stay, so reading ahead fills them sooner.
    if (scattered != each.scattered) each.mapping->expectScattered(each.scattered = scattered);
    if (scattered) continue;
    // The system's own limit is reached. The next one would fail, too.
    if (!each.mapping->lock()) return;
    each.held = true;
    held_ += each.mapping->bytes();
  }
}

MemoryUse Memory::use() const {
  const std::lock_guard lock(mutex_);
  MemoryUse use{most_, taken_, 0, held_};
  for (const Codes& each : codes_) use.codes += each.mapping->bytes();
  return use;
}

std::vector<Memory::AccountUse> Memory::accounts() const {
  const std::lock_guard lock(mutex_);
  std::vector<AccountUse> uses;
  for (const MemoryAccount* each : accounts_) uses.push_back({each->owner, each->taken_});
  return uses;
}

}  // namespace maxsimd
