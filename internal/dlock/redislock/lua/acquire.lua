-- Takes the lock if it is free and nobody has waited for it, or if this owner has
-- it already: an attempt whose reply was lost can be repeated, and gets the same
-- grant. Otherwise a caller that waits is put into the queue, once, and shows that
-- it is alive. A lock that is free, because its holder has died, goes to the first
-- waiter, whoever asks.
-- KEYS and ARGV[2..5] as in queue.lua
-- ARGV[1] owner  ARGV[6] TTL of the lock in ms  ARGV[7] stamp of the caller, or '' if it does not wait
-- Returns the token as a string; else a number: the TTL of the holder in ms, 0 if it has
-- none, as a value that no client has written, or -1 if dead waiters are in the way, and
-- the caller should ask again at once.
local held = redis.call('GET', KEYS[1])
if held then
  local owner, token = string.match(held, '^(.*):(%d+)$')
  if owner == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[6])
    return token
  end
elseif redis.call('EXISTS', KEYS[3]) == 0 then
  return grant(KEYS[1], KEYS[2], ARGV[1], ARGV[6], now())
end
local time = now()
if ARGV[7] ~= '' then
  if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then
    local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[3], digits(math.max((tonumber(last) or 0) + 1, time)), ARGV[1])
  end
  show(ARGV[1], ARGV[7], time)
  keep(KEYS[3], redis.call('PTTL', KEYS[4]))
end
if not held then
  local id, span, stamp = first(time)
  if id and id ~= ARGV[1] then
    hand(id, span, stamp, time)
  elseif not id and span then
    return -1
  else
    dequeue(ARGV[1])
    return grant(KEYS[1], KEYS[2], ARGV[1], ARGV[6], time)
  end
end
return math.max(0, left(held))
