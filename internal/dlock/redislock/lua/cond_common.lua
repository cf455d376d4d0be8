-- What the scripts of a condition share, behind queue.lua.
-- KEYS[1..4] and ARGV[2..5] as in queue.lua  KEYS[5] waiters for a signal, by ticket
local asleep = KEYS[5]
local at_once = 64 -- waiters looked at in one call

-- Puts id behind those in set.
local function append(set, id, time)
  local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')[2]
  redis.call('ZADD', set, digits(math.max((tonumber(last) or 0) + 1, time)), id)
end

-- Takes out who has waited longest for a signal and lives, with what it has shown.
local function rouse(time)
  for _ = 1, at_once do
    local id = redis.call('ZRANGE', asleep, 0, 0)[1]
    if not id then return nil end
    redis.call('ZREM', asleep, id)
    local span, stamp = living(id, time)
    if span then return id, span, stamp end
    redis.call('HDEL', KEYS[4], id)
  end
end

-- What to answer to a grant that does not hold the lock.
local function stale(held)
  local forced = string.match(redis.call('GET', KEYS[2]) or '', '^%d+:%d+:(.+)$')
  if forced and forced == string.match(ARGV[1], '^(.*):%d+$') then return -2 end
  return held and -1 or 0
end

local function remember(id, stamp, time)
  show(id, stamp, time)
  keep(asleep, redis.call('PTTL', KEYS[4]))
end
