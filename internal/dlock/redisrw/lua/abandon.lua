-- Takes back whatever one owner has, its place in a queue or its grant.
-- ARGV[6] owner
-- Returns {1, or 0 if it had nothing; 1 if admit.lua has more to do, else 0}.
local id = ARGV[6]
local found = redis.call('HDEL', waits, id)
drop(id)
if redis.call('HGET', state, 'writer') == id then
  redis.call('HSET', state, 'until', '0') -- as if it had expired: it may believe in its grant, so the fence has to move on
  found = found + 1
end
found = found + redis.call('ZREM', readers, id)
return {math.min(found, 1), pump('')}
