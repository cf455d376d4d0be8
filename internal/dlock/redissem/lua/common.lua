-- Begins every script of the semaphore. KEYS and the first four of ARGV are the
-- same for all of them:
-- KEYS[1] holders  KEYS[2] queue  KEYS[3] owners  KEYS[4] state  KEYS[5] limit
-- ARGV[1] permits, unless resized  ARGV[2] TTL of a grant in ms  ARGV[3] how long a waiter stays
-- that does not ask again, in ms; half as long again if it does not renew what it was notified of
-- ARGV[4] what begins the channel of a process
local holders, queue, owners, state = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ttl, waiterTTL = tonumber(ARGV[2]), tonumber(ARGV[3])
local limit = tonumber(redis.call('GET', KEYS[5]) or ARGV[1])
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)

-- Lua would print 16 digits as 1.7e+15.
local function digits(n) return string.format('%.0f', n) end

-- Holders, queue and owners live until nobody can believe in any of them, and end
-- at one instant: an entry of owners goes with what it describes. Clients may have
-- different TTLs; the longest wins.
local function touch()
  local at = digits(now + math.max(2 * math.max(ttl, waiterTTL), redis.call('PTTL', owners)))
  for i = 1, 3 do redis.call('PEXPIREAT', KEYS[i], at) end
end

-- Lets the state live for a day after the last grant.
local function remember()
  local ms = math.max(86400000, 2 * ttl)
  if redis.call('PTTL', state) < ms / 2 then redis.call('PEXPIRE', state, ms) end
end

-- The members of one owner's permits, each with the score that goes before it, if any.
local function members(owner, n, score)
  local list = {}
  for i = 1, n do
    if score then list[#list + 1] = digits(score) end
    list[#list + 1] = owner .. ':' .. i
  end
  return list
end

-- Drops grants that have expired, whole ones, until 64 permits are free or more.
local function evict()
  local left = 64
  while left > 0 do
    local member = redis.call('ZRANGEBYSCORE', holders, '-inf', now, 'LIMIT', 0, 1)[1]
    if not member then return end
    local owner = string.match(member, '^(.*):%d+$')
    local n = tonumber(string.match(redis.call('HGET', owners, owner) or '', '^%d+:(%d+)$') or 0)
    if n > 0 then redis.call('HDEL', owners, owner) end
    local expired = n > 0 and members(owner, n) or {member}
    redis.call('ZREM', holders, unpack(expired))
    left = left - #expired
  end
end

-- The next token. The clock carries it over a loss of data, the last token over
-- a clock that goes back.
local function ticket()
  local token = digits(math.max((tonumber(redis.call('HGET', state, 'fence') or 0) or 0) + 1, micros))
  redis.call('HSET', state, 'fence', token)
  return token
end

-- Permits beyond the TTL in the name of their owner are from before the clock was set back, and begin it again: their
-- holder may be dead. Looks at the last ones, up to one that is not late: that has the longest TTL, and the others wait for
-- no longer. At most 65; the next call looks further.
local function clamp()
  local last = 0
  repeat
    local late = redis.call('ZREVRANGE', holders, 0, last, 'WITHSCORES')
    for i = 1, #late, 2 do
      local span = string.match(late[i], '^%w+%-%w+%-(%d+):%d+$')
      if not span or tonumber(late[i + 1]) <= now + span then return end
      redis.call('ZADD', holders, digits(now + span), late[i])
    end
    last = last + 63
  until last > 63
end

-- While nobody can know what is still held, after a loss of data, nothing is granted: until hold, and for no longer than
-- wait, whatever becomes of the clock.
local function fits(n)
  local hold, wait = unpack(redis.call('HMGET', state, 'hold', 'wait'))
  if hold and wait and hold - now > tonumber(wait) then
    hold = now + wait
    redis.call('HSET', state, 'hold', digits(hold))
  end
  if now < (tonumber(hold) or 0) then return false end
  if redis.call('ZCARD', holders) + n <= limit then return true end
  clamp()
  return false
end

local function grant(owner, fence, n, span)
  redis.call('ZADD', holders, unpack(members(owner, n, now + span)))
  redis.call('HSET', owners, owner, fence .. ':' .. n)
  touch()
end

local function push(owner, payload)
  redis.call('PUBLISH', ARGV[4] .. string.match(owner, '^[^-]+'), owner .. ' ' .. payload)
end

local function drop(owner)
  redis.call('ZREM', queue, owner)
  redis.call('HDEL', owners, owner)
end

-- Grants to the head of the queue for as long as there is enough for it, and
-- pushes the grant to whoever is not the caller. Dead waiters, and those who want
-- more than there is now, leave the queue. At most 64 of either; the next call goes on.
local function pump(caller)
  for _ = 1, 64 do
    local head = redis.call('ZRANGE', queue, 0, 0)[1]
    if not head then return end
    local fence, n, dead, span, stamp = string.match(redis.call('HGET', owners, head) or '', '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
    n = tonumber(n)
    if not fence or tonumber(dead) <= now or dead - now > tonumber(span) then
      drop(head)
    elseif n > limit then
      drop(head)
      push(head, 'invalid ' .. limit)
    elseif fits(n) then
      redis.call('ZREM', queue, head)
      if head == caller then
        grant(head, fence, n, ttl)
      else
        grant(head, fence, n, span)
        push(head, 'granted ' .. fence .. ' ' .. stamp)
      end
    else
      return
    end
  end
end
