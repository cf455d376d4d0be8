-- Takes several locks if each is free and nobody waits for it, or this owner has
-- it already; else none.
-- KEYS[4i-3] lock  KEYS[4i-2] fence  KEYS[4i-1] queue  KEYS[4i] alive
-- ARGV[1] TTL of the locks in ms  ARGV[2] TTL of the fences in ms  ARGV[i+2] owner
-- Returns the tokens as strings, or none.
local n = #KEYS / 4
for i = 1, n do
  local held = redis.call('GET', KEYS[4 * i - 3])
  if held then
    if string.match(held, '^(.*):%d+$') ~= ARGV[i + 2] then return {} end
  elseif redis.call('EXISTS', KEYS[4 * i - 1]) == 1 then
    return {}
  end
end
local tokens, time = {}, now()
for i = 1, n do
  local held = redis.call('GET', KEYS[4 * i - 3])
  if held then
    redis.call('PEXPIRE', KEYS[4 * i - 3], ARGV[1])
    tokens[i] = string.match(held, ':(%d+)$')
  else
    tokens[i] = grant(KEYS[4 * i - 3], KEYS[4 * i - 2], ARGV[i + 2], ARGV[1], time)
  end
end
return tokens
