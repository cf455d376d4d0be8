-- Ends one grant, and no other, and begins the next phase if that was the last of it.
-- ARGV[6] owner  ARGV[7] w or r  ARGV[8] token
-- Returns {1, or what gone says; 1 if admit.lua has more to do, else 0}.
local id, holder = ARGV[6], writer()
local verdict = gone(id, ARGV[8])
if redis.call('HGET', state, 'fence') == ARGV[8] then
  if ARGV[7] == 'w' and holder == id then
    redis.call('HDEL', state, 'writer', 'until')
    verdict = 1
  elseif ARGV[7] == 'r' and reads(id) then
    redis.call('ZREM', readers, id)
    verdict = 1
  end
end
return {verdict, pump('')}
