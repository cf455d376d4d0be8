-- Takes a waiter out of wherever it is. One that was signalled leaves its place in
-- the queue, or the lock itself, to the next that waits for a signal.
-- ARGV[1] waiter
-- Returns 1 if it was anywhere, else 0.
local id, time = ARGV[1], now()
if redis.call('ZREM', asleep, id) == 1 then
  redis.call('HDEL', KEYS[4], id)
  return 1
end
local place = redis.call('ZSCORE', KEYS[3], id)
local mine = string.match(redis.call('GET', KEYS[1]) or '', '^(.*):%d+$') == id
dequeue(id)
if not place and not mine then return 0 end
local heir, span, stamp = rouse(time)
if mine and heir then
  hand(heir, span, stamp, time)
elseif mine then
  pass()
elseif heir then
  redis.call('ZADD', KEYS[3], place, heir)
  keep(KEYS[3], redis.call('PTTL', KEYS[4]))
end
return 1
