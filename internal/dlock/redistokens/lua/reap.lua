-- Gives back what expired holders have. Each is looked at again after ten TTLs,
-- for the token of a request that was still on its way to the server.
-- KEYS[7..] held by each
-- ARGV[2] 1 to reap holders that have not expired too  ARGV[3..] holders
-- Returns how many tokens that were.
local n = 0
for i = 3, #ARGV do
  local holder, held = ARGV[i], KEYS[i + 4]
  local expire, again = redis.call('ZSCORE', holders, holder), redis.call('ZSCORE', reaped, holder)
  local due = ARGV[2] == '1' or (expire and tonumber(expire) <= now) or (not expire and again and tonumber(again) <= now)
  if due then
    for _, token in ipairs(redis.call('LRANGE', held, 0, -1)) do n = n + give(held, token) end
    redis.call('ZREM', holders, holder)
    if expire then
      redis.call('ZADD', reaped, now + 10 * ttl, holder)
    else
      redis.call('ZREM', reaped, holder)
    end
  end
end
touch()
return n
