-- What the scripts of the queue share; this text stands before each of them.
-- KEYS[1] lock  KEYS[2] fence  KEYS[3] queue  KEYS[4] alive
-- ARGV[2] TTL of the fence in ms
-- ARGV[3] validity of a grant that reaches the caller by a notification, in ms
-- ARGV[4] how long the caller lives, as a waiter, after its last sign of life, in us
-- ARGV[5] what stands before the process in the channel
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- Lua would print 16 digits as 1.7e+15.
local function digits(n) return string.format('%.0f', n) end

-- The token of a grant: the clock carries it over a loss of data, the last
-- one over a clock that goes back. It is kept with the time, and with the owner that
-- was force-released last. The lock is written last: a script that fails has not taken it.
local function next_token(fence, time, forced)
  local last, _, before = string.match(redis.call('GET', fence) or '', '^(%d+):?(%d*):?(.*)$')
  local token = digits(math.max((tonumber(last) or 0) + 1, time))
  redis.call('SET', fence, token .. ':' .. digits(time) .. ':' .. (forced or before or ''), 'PX', ARGV[2])
  return token
end

local function grant(lock, fence, id, ttl, time)
  local token = next_token(fence, time)
  redis.call('SET', lock, id .. ':' .. token, 'PX', ttl)
  return token
end

local function dequeue(id)
  local queued = redis.call('ZREM', KEYS[3], id)
  redis.call('HDEL', KEYS[4], id)
  return queued
end

-- Lets key live for ms at least. Clients may have different TTLs; the longest wins.
local function keep(key, ms)
  if redis.call('PTTL', key) < tonumber(ms) then redis.call('PEXPIRE', key, ms) end
end

-- Shows that the caller waits and lives: until when, in us, for how many ms it trusts a
-- grant that a notification brings, and the stamp of its request. All that is its own, and
-- nothing of whoever hands the lock on.
local function show(id, stamp, time)
  redis.call('HSET', KEYS[4], id, digits(time + ARGV[4]) .. ' ' .. ARGV[3] .. ' ' .. stamp)
  keep(KEYS[4], digits(ARGV[4] / 500)) -- ms: twice the life of a waiter
end

-- What a waiter has shown, if it lives: for how many ms it trusts a grant, and its stamp. One that would live for longer
-- than that has shown itself before the clock was set back.
local function living(id, time)
  local dead, span, stamp = string.match(redis.call('HGET', KEYS[4], id) or '', '^(%d+) (%d+) (%d+)$')
  if dead and time <= tonumber(dead) and dead - time <= span * 1000 then return span, stamp end
end

-- The first waiter that lives, and what it has shown. Takes out dead ones before it,
-- four at most: then it returns nil and true, there may be more.
local function first(time)
  for _ = 1, 4 do
    local id = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
    if not id then return nil, false end
    local span, stamp = living(id, time)
    if span then return id, span, stamp end
    dequeue(id)
  end
  return nil, true
end

-- Gives the lock to a waiter, and pushes the grant to its process.
local function hand(id, span, stamp, time)
  dequeue(id)
  local token = grant(KEYS[1], KEYS[2], id, span, time)
  redis.call('PUBLISH', ARGV[5] .. string.match(id, '^[^-]*'), id .. ' ' .. token .. ' ' .. stamp)
end

-- For how many ms the lock lasts without a renewal. Redis stores a TTL as a time. So one beyond the TTL in the name of
-- the owner is from before the clock was set back, and begins again: its holder may be dead.
local function left(held)
  local ms, ttl = redis.call('PTTL', KEYS[1]), string.match(held or '', '^%w+%-%w+%-(%d+):%d+$')
  if not ttl or ms <= tonumber(ttl) then return ms end
  redis.call('PEXPIRE', KEYS[1], ttl)
  return tonumber(ttl)
end

-- Ends the present grant: the first waiter gets the lock, or nobody has it.
local function pass()
  if redis.call('EXISTS', KEYS[3]) == 1 then
    local time = now()
    local id, span, stamp = first(time)
    if id then return hand(id, span, stamp, time) end
  end
  redis.call('DEL', KEYS[1])
end
