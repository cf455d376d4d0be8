-- Looks, and changes nothing.
-- KEYS as in queue.lua
-- Returns the owner, or false if the lock is free; the token, the TTL in ms, since when in us, and how many wait. A value
-- that no client has written has an empty owner. What is unknown is 0.
local held = redis.call('GET', KEYS[1])
local owner, token = string.match(held or '', '^(.*):(%d+)$')
local last, since = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+):(%d+)')
return {
  owner or (held and ''), tonumber(token) or 0, math.max(0, redis.call('PTTL', KEYS[1])),
  last == token and tonumber(since) or 0, redis.call('ZCARD', KEYS[3]),
}
