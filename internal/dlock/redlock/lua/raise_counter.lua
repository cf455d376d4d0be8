-- Makes every later token of this server greater than one.
-- KEYS[1] fence
-- ARGV[1] token  ARGV[2] TTL of the fence in ms
local last, forced = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):(.*)$')
if not last or tonumber(last) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1] .. ':' .. (forced or ''), 'PX', ARGV[2])
end
return 1
