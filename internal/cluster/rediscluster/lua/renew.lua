-- Renews the lease of a member, and never makes one.
-- ARGV[2] name  ARGV[3] incarnation
-- Returns 1, or 0 if the entry is gone or that of another.
evict()
local name = ARGV[2]
local incarnation = string.match(redis.call('HGET', members, name) or '', '^([^;]*);')
if incarnation ~= ARGV[3] or not redis.call('ZSCORE', leases, name) then return 0 end
lease(name)
return 1
