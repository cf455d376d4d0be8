-- Takes the lock if it is free, or if this owner has it already: an attempt whose
-- reply was lost can be repeated, and gets the same grant.
-- KEYS[1] lock  KEYS[2] fence
-- ARGV[1] owner  ARGV[2] TTL of the lock in ms  ARGV[3] TTL of the fence in ms
-- Returns the token as a string, or nil if another owner has the lock.
local held = redis.call('GET', KEYS[1])
if held then
  local owner, token = string.match(held, '^(.*):(%d+)$')
  if owner ~= ARGV[1] then return false end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return token
end
-- The clock carries the token over a loss of data, the last token over a clock
-- that goes back. Lua would print 16 digits as 1.7e+15.
local now = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
local token = string.format('%.0f', math.max(last + 1, now[1] * 1000000 + now[2]))
redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. token, 'PX', ARGV[2])
return token
