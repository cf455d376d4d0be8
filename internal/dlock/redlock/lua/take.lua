-- Gives the lock of this server to an owner if nobody has it.
-- KEYS[1] lock  KEYS[2] fence  KEYS[3] known  KEYS[4] settling
-- ARGV[1] OWNER  ARGV[2] TTL in ms  ARGV[3] TTL of the fence in ms
-- ARGV[4] how long a server without data grants nothing, in ms; 0: it grants at once
-- Returns a token; or for how many ms another owner has the lock if it does not renew. A
-- value without an end, which no client has written, counts as a lock of one TTL.

-- For how many ms a key lasts. Redis stores that as a time. So a key that would outlast what its value says is from before
-- the clock was set back, and begins again.
local function left(key, pattern)
  local ms = redis.call('PTTL', key)
  local most = ms > 0 and string.match(redis.call('GET', key), pattern)
  if not most or ms <= tonumber(most) then return ms end
  redis.call('PEXPIRE', key, most)
  return tonumber(most)
end

local t = redis.call('TIME')
local time = t[1] .. string.format('%06d', t[2])
local state = redis.call('EXISTS', KEYS[3], KEYS[4])
if state ~= 1 then
  if redis.call('EXISTS', KEYS[3]) == 0 then
    redis.call('SET', KEYS[3], time)
    if tonumber(ARGV[4]) > 0 then
      redis.call('SET', KEYS[4], ARGV[4], 'PX', ARGV[4])
      return tonumber(ARGV[4])
    end
  else
    return left(KEYS[4], '^(%d+)$')
  end
end
local ms = left(KEYS[1], '^%w+%-%w+%-(%d+):')
if ms == -1 then return tonumber(ARGV[2]) end
if ms ~= -2 then return ms end
local token = tonumber(time)
local last, forced = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+):(.*)$')
if last then token = math.max(token, tonumber(last) + 1) end
token = string.format('%.0f', token)
redis.call('SET', KEYS[2], token .. ':' .. (forced or ''), 'PX', ARGV[3])
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. token .. ':' .. time, 'PX', ARGV[2])
return token
