-- Takes the permits of one grant back, and hands them on.
-- ARGV[6] owner  ARGV[7] token  ARGV[8] number of permits
-- Returns 1, or 0 if the store no longer has the grant.
local owner, n = ARGV[6], tonumber(ARGV[8])
evict()
local live = 0
if redis.call('HGET', owners, owner) == ARGV[7] .. ':' .. ARGV[8] then
  live = tonumber(redis.call('ZSCORE', holders, owner .. ':1') or 0) > now and 1 or 0
  redis.call('ZREM', holders, unpack(members(owner, n)))
  redis.call('HDEL', owners, owner)
end
pump(owner)
return live
