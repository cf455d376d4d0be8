-- KEYS[1] pending  ARGV[1] command that publishes  ARGV[2] channel  ARGV[3] name of the shard
-- head returns the earliest moment as a number, or nil.
local function head() return tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]) end
-- announce tells the earliest moment if it is earlier than before, and returns it,
-- or else an empty string. A message that cannot be sent is like one that is lost.
local function announce(before)
  local now = head()
  if not now or (before and now >= before) then return '' end
  redis.pcall(ARGV[1], ARGV[2], ARGV[3] .. ' ' .. digits(now))
  return digits(now)
end
