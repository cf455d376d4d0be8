-- Makes ids pending that were lent, unless the lease has been lent again. One that is
-- pending already has been scheduled since, and stays as it is.
-- KEYS[2] leased  ARGV[4..] member, moment in ms and id, in turn
-- Returns {how many there were, the earliest moment if it has become earlier or else ''}.
local before, n = head(), 0
for i = 4, #ARGV, 3 do
  if redis.call('ZREM', KEYS[2], ARGV[i]) == 1 then
    redis.call('ZADD', KEYS[1], 'NX', ARGV[i + 1], ARGV[i + 2])
    n = n + 1
  end
end
return {n, announce(before)}
