-- Looks, and changes nothing.
-- Returns {1 if the key is held, else 0; ms that the store keeps the writer, or the
-- last of the readers; how many wait; token and owner of the fence, when the writer
-- was granted, or empty}.
local held, last = redis.call('HMGET', state, 'fence', 'owner', 'since', 'until'), 0
local since = held[3] or ''
if writer() then
  last = tonumber(held[4])
else
  last, since = tonumber(redis.call('ZRANGE', readers, -1, -1, 'WITHSCORES')[2] or 0), ''
end
local waiters = redis.call('ZCARD', writing) + redis.call('ZCARD', reading) + redis.call('ZCARD', phase)
return {last > now and 1 or 0, math.max(0, last - now), waiters, held[1] or '', held[2] or '', since}
