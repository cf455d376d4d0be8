-- Begins every script of the membership. KEYS are the same for all of them:
-- KEYS[1] members, a hash: NAME to INCARNATION;MEMBER
-- KEYS[2] leases, a sorted set: NAME by when it ends, in ms of the server's clock
-- KEYS[3] state, a hash: epoch, revision
-- ARGV[1] TTL of an entry in ms
local members, leases, state = KEYS[1], KEYS[2], KEYS[3]
local ttl = tonumber(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Lua would print 13 digits as 1.7e+12.
local function digits(n) return string.format('%.0f', n) end

-- Notes that the members have changed. A server that has lost its data begins another
-- epoch, by which those who watch can tell.
local function change()
  redis.call('HSETNX', state, 'epoch', digits(clock[1] * 1000000 + clock[2]))
  redis.call('HINCRBY', state, 'revision', 1)
end

-- Drops up to 256 members that have lapsed.
local function evict()
  local lapsed = redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, 256)
  if #lapsed > 0 then
    redis.call('ZREM', leases, unpack(lapsed))
    redis.call('HDEL', members, unpack(lapsed))
    change()
  end
end

-- Lets a member live for one TTL. The keys live for as long as the longest of all.
local function lease(name)
  redis.call('ZADD', leases, now + ttl, name)
  local ms = math.max(2 * ttl, redis.call('PTTL', leases))
  redis.call('PEXPIRE', members, ms)
  redis.call('PEXPIRE', leases, ms)
  redis.call('PEXPIRE', state, math.max(86400000, ms))
end
