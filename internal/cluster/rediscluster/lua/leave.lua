-- Deletes the entry of a member, if it is that of this incarnation.
-- ARGV[2] name  ARGV[3] incarnation
local name = ARGV[2]
if string.match(redis.call('HGET', members, name) or '', '^([^;]*);') == ARGV[3] then
  redis.call('ZREM', leases, name)
  redis.call('HDEL', members, name)
  change()
end
return 1
