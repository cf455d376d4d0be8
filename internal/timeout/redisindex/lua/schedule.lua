-- Puts ids, or moves them; with NX only those that are not there. If the earliest moment
-- has become earlier, it publishes that. A message that cannot be sent is like one that is lost.
-- ARGV[1] command that publishes  ARGV[2] channel  ARGV[3] name of the shard
-- ARGV[4] 'nx' or ''  ARGV[5..] moment in ms and id, in turn
-- Returns {the earliest moment if it has become earlier or else '', how many ids were new}.
local before, added, earliest = head(), 0, ''
if ARGV[4] == 'nx' then
  added = redis.call('ZADD', KEYS[1], 'NX', unpack(ARGV, 5))
else
  added = redis.call('ZADD', KEYS[1], unpack(ARGV, 5))
end
local now = head()
if now and (not before or now < before) then
  earliest = digits(now)
  redis.pcall(ARGV[1], ARGV[2], ARGV[3] .. ' ' .. earliest)
end
return {earliest, added}
