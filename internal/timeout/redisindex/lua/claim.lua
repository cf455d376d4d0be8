-- Removes what is due and returns it, the earliest first.
-- KEYS[1] pending
-- ARGV[1] limit
-- Returns {now in ms, earliest moment that is left or '', id and moment in turn...}.
local time = redis.call('TIME')
local now = digits(time[1] * 1000 + math.floor(time[2] / 1000))
local reply, ids = {now, ''}, {}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #due, 2 do
  ids[#ids + 1] = due[i]
  reply[#reply + 1] = due[i]
  reply[#reply + 1] = digits(tonumber(due[i + 1]))
end
if #ids > 0 then redis.call('ZREM', KEYS[1], unpack(ids)) end
local next = head()
if next then reply[2] = digits(next) end
return reply
