-- Puts ids, or moves them to an earlier moment. If the earliest moment of all
-- has become earlier, it publishes that. A message that cannot be sent is like one that is lost.
-- ARGV[1] command that publishes  ARGV[2] channel  ARGV[3] name of the shard
-- ARGV[4..] moment in ms and id, in turn
-- Returns the earliest moment if it has become earlier, or else ''.
local before, earliest = head(), ''
redis.call('ZADD', KEYS[1], 'LT', unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], 86400000)
local now = head()
if not before or now < before then
  earliest = digits(now)
  redis.pcall(ARGV[1], ARGV[2], ARGV[3] .. ' ' .. earliest)
end
return earliest
