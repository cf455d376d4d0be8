-- Takes the permits of one grant back, and hands them on.
-- ARGV[5] owner  ARGV[6] token  ARGV[7] number of permits
-- Returns 1, or 0 if the store no longer has the grant.
local owner, n = ARGV[5], tonumber(ARGV[7])
evict()
local live = 0
if redis.call('HGET', owners, owner) == ARGV[6] .. ':' .. ARGV[7] then
  live = tonumber(redis.call('ZSCORE', holders, owner .. ':1') or 0) > now and 1 or 0
  redis.call('ZREM', holders, unpack(members(owner, n)))
  redis.call('HDEL', owners, owner)
end
pump(owner)
return live
