-- Gives grants a new TTL. Never inserts: what is gone stays gone.
-- KEYS[2i-1] lock  KEYS[2i] fence
-- ARGV[1] TTL in ms  ARGV[i+1] OWNER:FENCE
-- Returns for each 1, or 0 if nobody has the lock, or -1 if another grant has it, or
-- -2 if the owner was force-released.
local verdicts = {}
for i = 1, #KEYS / 2 do
  local held = redis.call('GET', KEYS[2 * i - 1])
  if held == ARGV[i + 1] then
    verdicts[i] = redis.call('PEXPIRE', KEYS[2 * i - 1], ARGV[1])
  else
    local forced = string.match(redis.call('GET', KEYS[2 * i]) or '', '^%d+:%d+:(.+)$')
    if forced and forced == string.match(ARGV[i + 1], '^(.*):%d+$') then
      verdicts[i] = -2
    else
      verdicts[i] = held and -1 or 0
    end
  end
end
return verdicts
