-- Renews grants of one semaphore, and never makes one.
-- ARGV[5..] owner, token and number of permits of each
-- Returns 1 or 0 for each: 0 if the store no longer has it.
evict()
local verdicts = {}
for i = 5, #ARGV, 3 do
  local owner, n = ARGV[i], tonumber(ARGV[i + 2])
  local live = redis.call('HGET', owners, owner) == ARGV[i + 1] .. ':' .. ARGV[i + 2]
    and (tonumber(redis.call('ZSCORE', holders, owner .. ':1') or 0) > now)
  if live then
    redis.call('ZADD', holders, 'XX', unpack(members(owner, n, now + ttl)))
    touch()
    remember()
  end
  verdicts[#verdicts + 1] = live and 1 or 0
end
pump('')
return verdicts
