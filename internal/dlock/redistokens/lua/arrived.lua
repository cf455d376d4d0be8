-- Follows BLMOVE in its pipeline. The server may have lost its data since the holder was registered, and the
-- client may die before its next request: then others must find the token that has arrived.
-- KEYS[7] held by the caller
-- ARGV[2] holder
if redis.call('EXISTS', KEYS[7]) == 1 then
  if not (redis.call('ZSCORE', holders, ARGV[2]) or redis.call('ZSCORE', reaped, ARGV[2])) then
    redis.call('ZADD', holders, now + ttl, ARGV[2])
  end
  touch()
end
