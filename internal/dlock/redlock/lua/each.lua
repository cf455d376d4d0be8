-- Stands before renew.lua and release.lua, and calls act for each lock that an owner has.
-- KEYS[2i-1] lock  KEYS[2i] fence
-- ARGV[1] TTL in ms  ARGV[i+1] OWNER
-- Returns for each 1, or 0 if nobody has the lock, or -1 if another owner has it, or
-- -2 if the owner was force-released.
local function each(act)
  local verdicts = {}
  for i = 1, #KEYS / 2 do
    local owner = string.match(redis.call('GET', KEYS[2 * i - 1]) or '', '^(.*):%d+:%d+$')
    if owner == ARGV[i + 1] then
      act(KEYS[2 * i - 1])
      verdicts[i] = 1
    else
      local forced = string.match(redis.call('GET', KEYS[2 * i]) or '', '^%d+:(.+)$')
      verdicts[i] = forced == ARGV[i + 1] and -2 or owner and -1 or 0
    end
  end
  return verdicts
end
