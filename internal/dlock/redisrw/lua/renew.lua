-- Gives grants of one key a new TTL. Never inserts: what is gone stays gone.
-- ARGV[6..] owner, w or r, and token of each
-- Returns for each 1, or what gone says.
local verdicts = {}
local token = redis.call('HGET', state, 'fence')
local holder = writer()
for i = 6, #ARGV, 3 do
  local id, verdict = ARGV[i], 1
  if ARGV[i + 2] == token and ARGV[i + 1] == 'w' and holder == id then
    redis.call('HSET', state, 'until', digits(now + ttl))
  elseif ARGV[i + 2] == token and ARGV[i + 1] == 'r' and reads(id) then
    redis.call('ZADD', readers, 'XX', digits(now + ttl), id)
  else
    verdict = gone(id, ARGV[i + 2])
  end
  verdicts[#verdicts + 1] = verdict
end
keep(readers, ttl)
keep(state, math.max(86400000, 2 * ttl))
return verdicts
