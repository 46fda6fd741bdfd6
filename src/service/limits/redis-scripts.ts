/**
 * Scripts that Redis runs in one step. Every time is that of Redis, in milliseconds, because the clocks of nodes differ. If the
 * clock of Redis steps back, time stands still and goes on from there.
 *
 * KEYS[1]: the key of the tenant. KEYS[2]: the clock. The last argument is the time, or -1 for that of Redis (tests give one).
 */

const clock = `
local function now(given)
  local at = tonumber(given)
  if at < 0 then
    local time = redis.call('TIME')
    at = time[1] * 1000 + time[2] / 1000
  end
  local known = redis.call('HMGET', KEYS[2], 'last', 'offset')
  local last, offset = tonumber(known[1] or '-1e300'), tonumber(known[2] or '0')
  if at + offset < last then
    offset = last - at
    redis.call('HSET', KEYS[2], 'offset', string.format('%.3f', offset))
  end
  redis.call('HSET', KEYS[2], 'last', string.format('%.3f', at + offset))
  return at + offset
end`;

/**
 * Admits a request of a tenant, and of an API key with a limit of its own (KEYS[3]). ARGV: name of the admission, limit of the
 * tenant, limit of the key or -1, window in ms, time. The log of admissions is a set that is sorted by time. Returns whether
 * the request was admitted, how many are left, the milliseconds to wait, as text, and whose limit that is: 1 for the
 * tenant's, 2 for the key's.
 */
export const admitScript = `${clock}
local window, at = tonumber(ARGV[4]), now(ARGV[5])
-- The present is rounded down and admissions are rounded up, so that no window ever holds one too many.
local floor = math.floor(at)
local claims = {{KEYS[1], tonumber(ARGV[2])}}
if tonumber(ARGV[3]) >= 0 then claims[2] = {KEYS[3], tonumber(ARGV[3])} end
local longest, decides = 0, 1
for place, claim in ipairs(claims) do
  local name, limit = claim[1], claim[2]
  redis.call('ZREMRANGEBYSCORE', name, '-inf', floor - window)
  local count = redis.call('ZCARD', name)
  claim.left = limit - count - 1
  if claim.left < 0 then
    local wait = window
    if limit >= 1 then
      wait = redis.call('ZRANGE', name, count - limit, count - limit, 'WITHSCORES')[2] + window - floor
    end
    if wait > longest then longest, decides = wait, place end
  end
end
if longest > 0 then return {0, 0, tostring(longest), decides} end
for place, claim in ipairs(claims) do
  redis.call('ZADD', claim[1], math.ceil(at), ARGV[1])
  redis.call('PEXPIRE', claim[1], window + 1000)
  if claim.left < claims[decides].left then decides = place end
end
return {1, claims[decides].left, tostring(window), decides}`;

/** Takes a slot. ARGV: name of the lease, limit, lease in ms, time. Returns whether there was one. */
export const acquireScript = `${clock}
local limit, lease, at = tonumber(ARGV[2]), tonumber(ARGV[3]), now(ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at)
if redis.call('ZCARD', KEYS[1]) >= limit then return 0 end
redis.call('ZADD', KEYS[1], at + lease, ARGV[1])
redis.call('PEXPIRE', KEYS[1], lease + 1000)
return 1`;

/** Renews a lease, even one that has run out, since its request still runs. ARGV: name of the lease, lease in ms, time. */
export const renewScript = `${clock}
local lease, at = tonumber(ARGV[2]), now(ARGV[3])
redis.call('ZADD', KEYS[1], at + lease, ARGV[1])
redis.call('PEXPIRE', KEYS[1], lease + 1000)
return 1`;
