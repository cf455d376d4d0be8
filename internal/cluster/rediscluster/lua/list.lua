-- Lists the members, unless the caller knows them.
-- ARGV[2] epoch and ARGV[3] revision that the caller knows
-- Returns {epoch, revision, 0} if there is no other, and otherwise {epoch, revision, 1,
-- NAME, INCARNATION;MEMBER, ...}. An epoch of 0 means that there has been no member.
evict()
local epoch = redis.call('HGET', state, 'epoch') or '0'
local revision = redis.call('HGET', state, 'revision') or '0'
if epoch == ARGV[2] and revision == ARGV[3] then return {epoch, revision, 0} end
local reply = {epoch, revision, 1}
for _, name in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
  reply[#reply + 1] = name
  reply[#reply + 1] = redis.call('HGET', members, name) or ''
end
return reply
