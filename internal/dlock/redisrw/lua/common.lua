-- Begins every script of the read/write lock. KEYS and the first five of ARGV
-- are the same for all of them:
-- KEYS[1] state  KEYS[2] readers  KEYS[3] waiting writers  KEYS[4] waiting readers
-- KEYS[5] readers of the phase that has begun  KEYS[6] what is known of those who wait
-- ARGV[1] TTL of a grant in ms  ARGV[2] validity of a grant that reaches the caller by a notification, in ms  ARGV[3] how long a silent waiter stays
-- with a waiter that does not ask again, in ms  ARGV[4] command that pushes  ARGV[5] its channels
local state, readers, writing, reading, phase, waits = unpack(KEYS)
local ttl, first, waiterTTL = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
local at_once = 64 -- who gets in, or is found dead, in one call; the next call goes on

-- Lua would print 16 digits as 1.7e+15.
local function digits(n) return string.format('%.0f', n) end

-- A number that grows: the clock carries it over a loss of data, the last one
-- over a clock that goes back.
local function grown(field)
  local n = digits(math.max((tonumber(redis.call('HGET', state, field) or 0) or 0) + 1, micros))
  redis.call('HSET', state, field, n)
  return n
end

-- Lets key live for ms at least. Clients may have different TTLs.
local function keep(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end

-- The writer that holds the key, or nil.
local function writer()
  local held = redis.call('HMGET', state, 'writer', 'until')
  if held[1] and tonumber(held[2]) > now then return held[1] end
end

local function no_reader() return redis.call('ZCOUNT', readers, '(' .. digits(now), '+inf') == 0 end

local function reads(id) return (tonumber(redis.call('ZSCORE', readers, id) or 0) or 0) > now end

-- What to answer to a grant that the store no longer has: -2 if it was force-released, -1
-- if another owner writes, else 0.
local function gone(id, token)
  if tonumber(token) <= tonumber(redis.call('HGET', state, 'forced') or 0) then return -2 end
  local holder = writer()
  return holder and holder ~= id and -1 or 0
end

-- Takes id out of where it waits.
local function drop(id)
  redis.call('ZREM', writing, id)
  redis.call('ZREM', reading, id)
  redis.call('ZREM', phase, id)
  redis.call('HDEL', waits, id)
end

-- Validity in ms of a notified grant, and the stamp of its last request; or
-- nil if it has been silent for too long.
local function alive(id)
  local seen, span, stamp = string.match(redis.call('HGET', waits, id) or '', '^(%d+):(%d+):(.*)$')
  if seen and tonumber(seen) + waiterTTL > now then return tonumber(span), stamp end
end

-- Each grant returns what its owner has to know: the token and the owner of the fence.
local function grant_write(id, ms)
  local token = grown('fence')
  redis.call('DEL', readers) -- they have expired: not even a clock that goes back brings them in again
  redis.call('HSET', state, 'owner', id, 'writer', id, 'since', digits(micros), 'until', digits(now + ms), 'wrote', '1')
  keep(state, math.max(86400000, 2 * ttl))
  drop(id)
  return {token, id}
end

local function grant_read(id, ms)
  local fence = redis.call('HMGET', state, 'fence', 'owner')
  -- A writer that is still there has expired. The fence moves on, so that a resource refuses what it writes late.
  if not fence[1] or redis.call('HDEL', state, 'writer', 'until') > 0 then
    fence = {grown('fence'), id}
    redis.call('HSET', state, 'owner', id)
  end
  redis.call('HSET', state, 'wrote', '0')
  redis.call('ZADD', readers, digits(now + ms), id)
  keep(state, math.max(86400000, 2 * ttl))
  keep(readers, ms)
  drop(id)
  return fence
end

local function push(id, fence, stamp)
  redis.call(ARGV[4], ARGV[5] .. string.match(id, '^[^-]+'), table.concat({id, fence[1], fence[2], stamp}, ' '))
end

-- The first writer that waits and is alive, with what alive says of it; or nil; or
-- false if there may be one behind many dead ones.
local function next_writer()
  for _ = 1, at_once do
    local id = redis.call('ZRANGE', writing, 0, 0)[1]
    if not id then return nil end
    local span, stamp = alive(id)
    if span then return id, span, stamp end
    drop(id)
  end
  return false
end

-- Lets readers of the phase in, first come first.
local function admit(caller)
  for _ = 1, at_once do
    local id = redis.call('ZRANGE', phase, 0, 0)[1]
    if not id then return end
    local span, stamp = alive(id)
    if id == caller then
      grant_read(id, ttl)
    elseif span then
      push(id, grant_read(id, span), stamp)
    else
      drop(id)
    end
  end
end

-- Begins the next phase if the last one is over, and tells those who get in,
-- except the caller, which hears it anyway. After a writer it is the turn of the
-- readers that wait by now, then of the next writer. Without a writer that waits
-- nobody else has to. Returns 1 if more could get in than did, else 0.
local function pump(caller)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', readers, '-inf', now, 'LIMIT', 0, at_once)) do
    redis.call('ZREM', readers, id)
  end
  if writer() then return 0 end
  local id, span, stamp = next_writer()
  if redis.call('EXISTS', phase) == 0 and redis.call('EXISTS', reading) == 1
    and (id == nil or redis.call('HGET', state, 'wrote') == '1') then
    redis.call('RENAME', reading, phase)
    redis.call('HSET', state, 'wrote', '0')
  end
  admit(caller)
  if redis.call('EXISTS', phase) == 1 or id == false or id == nil and redis.call('EXISTS', reading) == 1 then return 1 end
  if id and no_reader() then
    local fence = grant_write(id, id == caller and ttl or span)
    if id ~= caller then push(id, fence, stamp) end
  end
  return 0
end
