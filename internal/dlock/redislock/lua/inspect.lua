-- Looks, and changes nothing.
-- KEYS as in queue.lua
-- Returns the lock or '', its TTL in ms, the fence or '', and how many wait.
return {
  redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1]),
  redis.call('GET', KEYS[2]) or '', redis.call('ZCARD', KEYS[3]),
}
