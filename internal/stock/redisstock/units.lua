-- Learns what has become of takings, and takes units.
--
-- KEYS[1]  the level: hash of version and available, as the database had them
-- KEYS[2]  what is taken of it: hash of UNITS:DEADLINE by taking
-- ARGV[1]  milliseconds that the keys are kept
-- ARGV[2]  milliseconds that a taking lasts
-- ARGV[3]  the new taking
-- ARGV[4]  how many takings are over; four arguments follow for each: its name, the version it
--          was taken from, and the version and the units available that the database had since
--          then, or twice ''
-- ARGV[n]  how many units each order wants; none takes nothing
-- Returns the version, and of each order 1 if it has its units and 0 if not; or -1 alone if the
-- level is not known.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = tonumber(ARGV[2])

local level = redis.call('HMGET', KEYS[1], 'version', 'available')
local version, available = tonumber(level[1] or ''), tonumber(level[2] or '')
if not version or not available then
  version, available = nil, nil
end

local learnt = false
local first = 5 + 4 * tonumber(ARGV[4])
for i = 5, first - 1, 4 do
  redis.call('HDEL', KEYS[2], ARGV[i])
  local seen, v, a = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  -- Versions only grow. One that is lower than what was seen here before it was read belongs to
  -- another history than the one here, which is then of no use.
  if v and (not version or v >= version or version == seen) then
    version, available, learnt = v, a, true
  end
end
if learnt then
  redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version), 'available', string.format('%.0f', available))
end
if not version then
  return {-1}
end

local reply = {version}
if first <= #ARGV then
  local left = available
  local taken = redis.call('HGETALL', KEYS[2])
  for i = 1, #taken, 2 do
    local units, deadline = string.match(taken[i + 1], '^(%d+):(%d+)$')
    deadline = tonumber(deadline or '')
    if not deadline or deadline <= now or deadline > now + life then
      redis.call('HDEL', KEYS[2], taken[i])
    else
      left = left - tonumber(units)
    end
  end
  local sum = 0
  for i = first, #ARGV do
    local wanted = tonumber(ARGV[i])
    if wanted <= left then
      left, sum = left - wanted, sum + wanted
      reply[#reply + 1] = 1
    else
      reply[#reply + 1] = 0
    end
  end
  if sum > 0 then
    redis.call('HSET', KEYS[2], ARGV[3], string.format('%.0f:%.0f', sum, now + life))
    redis.call('PEXPIRE', KEYS[2], ARGV[1])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return reply
