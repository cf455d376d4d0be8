-- Takes a name, or keeps it: a repetition does no harm.
-- ARGV[2] name  ARGV[3] incarnation  ARGV[4] address as in MEMBER  ARGV[5] MEMBER
-- ARGV[6] 1 if the entry was there before
-- Returns {1}; or {0, MEMBER, ms} of a live instance at another address and how long
-- it is leased yet; or {-1} if there is a successor at the same address.
evict()
local name = ARGV[2]
if redis.call('ZSCORE', leases, name) then
  local held = redis.call('HGET', members, name) or ''
  local incarnation, address = string.match(held, '^([^;]*);[^;]*;([^;]*);')
  if incarnation and incarnation ~= ARGV[3] then
    if address ~= ARGV[4] or address == '' then
      return {0, string.match(held, '^[^;]*;(.*)$'), redis.call('ZSCORE', leases, name) - now}
    end
    if ARGV[6] == '1' then return {-1} end
  end
end
redis.call('HSET', members, name, ARGV[3] .. ';' .. ARGV[5])
change()
lease(name)
return {1}
