-- Makes ids pending, or moves them; with NX only those that are not pending yet. It
-- does so for several callers, one after the other.
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
reply[1] = announce(before)
return reply
