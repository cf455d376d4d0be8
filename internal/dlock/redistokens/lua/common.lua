-- Begins every script of the token semaphore. KEYS[1] to KEYS[6] and ARGV[1] are
-- the same for all of them:
-- KEYS[1] free  KEYS[2] state  KEYS[3] turn  KEYS[4] holders  KEYS[5] reaped  KEYS[6] withheld
-- ARGV[1] TTL of a holder in ms
local free, state, turn, holders, reaped, withheld = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local ttl = tonumber(ARGV[1])
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)

-- Lua would print 16 digits as 1.7e+15.
local function digits(n) return string.format('%.0f', n) end

-- A semaphore that nobody uses for a day is forgotten, all of it at one instant.
local function touch()
  local at = digits(now + math.max(86400000, 2 * ttl))
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, at) end
end

local function expires(holder) return tonumber(redis.call('ZSCORE', holders, holder) or 0) end

-- Moves one token out of held, to where it belongs: after a loss of data, clients that are blocked
-- on free must not get it before the hold is over. Returns 0 if held does not have it.
local function give(held, token)
  if redis.call('LREM', held, 1, token) == 0 then return 0 end
  local list = free
  if token == 'turn' then
    list = turn
  elseif now < tonumber(redis.call('HGET', state, 'hold') or 0) then
    list = withheld
  end
  redis.call('RPUSH', list, token)
  return 1
end
