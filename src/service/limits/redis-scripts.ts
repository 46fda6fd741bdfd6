/**
 * What Redis does in one step. Every time is Redis' own, in milliseconds: the clocks of nodes differ. Should its clock
 * step back, time stands still and goes on from there, as in the limiter of one process.
 *
 * KEYS[1]: the tenant's; KEYS[2]: the clock. The last argument is the time, or -1 for Redis' own (tests give it).
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
 * ARGV: admission's name, limit, window in ms, time. A log of admissions (a sorted set by time): exact, and it knows
 * when the next one fits. Returns whether it was admitted, how many are left, and the milliseconds to wait as text.
 */
export const admitScript = `${clock}
local limit, window, at = tonumber(ARGV[2]), tonumber(ARGV[3]), now(ARGV[4])
-- The present rounded down and admissions rounded up: no window ever holds one too many.
local floor = math.floor(at)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', floor - window)
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then
  if limit < 1 then return {0, 0, tostring(window)} end
  local leaving = redis.call('ZRANGE', KEYS[1], count - limit, count - limit, 'WITHSCORES')
  return {0, 0, tostring(leaving[2] + window - floor)}
end
redis.call('ZADD', KEYS[1], math.ceil(at), ARGV[1])
redis.call('PEXPIRE', KEYS[1], window + 1000)
return {1, limit - count - 1, tostring(window)}`;

/** ARGV: lease's name, limit, lease in ms, time. Returns whether there was a slot. */
export const acquireScript = `${clock}
local limit, lease, at = tonumber(ARGV[2]), tonumber(ARGV[3]), now(ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at)
if redis.call('ZCARD', KEYS[1]) >= limit then return 0 end
redis.call('ZADD', KEYS[1], at + lease, ARGV[1])
redis.call('PEXPIRE', KEYS[1], lease + 1000)
return 1`;

/** ARGV: lease's name, lease in ms, time. One that has run out is taken again: its request still runs. */
export const renewScript = `${clock}
local lease, at = tonumber(ARGV[2]), now(ARGV[3])
redis.call('ZADD', KEYS[1], at + lease, ARGV[1])
redis.call('PEXPIRE', KEYS[1], lease + 1000)
return 1`;
