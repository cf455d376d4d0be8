-- Puts ids, or moves them; with NX only those that are not there. It does so for
-- several callers, one after the other. If the earliest moment has become earlier, it
-- publishes that. A message that cannot be sent is like one that is lost.
-- ARGV[1] command that publishes  ARGV[2] channel  ARGV[3] name of the shard
-- ARGV[4] 'nx' or ''  ARGV[5..] for each caller: number of its values; moment in ms and id, in turn
-- Returns {the earliest moment if it has become earlier or else '', for each caller how many ids were new}.
local before, reply, i = head(), {''}, 5
while i <= #ARGV do
  local last = i + ARGV[i]
  if ARGV[4] == 'nx' then
    reply[#reply + 1] = redis.call('ZADD', KEYS[1], 'NX', unpack(ARGV, i + 1, last))
  else
    reply[#reply + 1] = redis.call('ZADD', KEYS[1], unpack(ARGV, i + 1, last))
  end
  i = last + 1
end
local now = head()
if now and (not before or now < before) then
  reply[1] = digits(now)
  redis.pcall(ARGV[1], ARGV[2], ARGV[3] .. ' ' .. reply[1])
end
return reply
