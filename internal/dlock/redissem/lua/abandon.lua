-- Takes back whatever one owner has, its place in the queue or its permits.
-- ARGV[5] owner
-- Returns 1, or 0 if it had nothing.
local owner = ARGV[5]
evict()
local entry = redis.call('HGET', owners, owner)
if entry then
  local n = string.match(entry, '^%d+:(%d+)$')
  if n then redis.call('ZREM', holders, unpack(members(owner, tonumber(n)))) end
  drop(owner)
end
pump(owner)
return entry and 1 or 0
