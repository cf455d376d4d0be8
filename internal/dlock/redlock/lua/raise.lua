-- Makes a token the last one of this server, if the owner has the lock.
-- KEYS[1] lock  KEYS[2] fence
-- ARGV[1] OWNER  ARGV[2] token  ARGV[3] TTL of the fence in ms
-- Returns 1, or 0 if the owner does not have the lock.
local owner, _, since = string.match(redis.call('GET', KEYS[1]) or '', '^(.*):(%d+):(%d+)$')
if owner ~= ARGV[1] then return 0 end
local last, forced = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+):(.*)$')
if not last or tonumber(last) < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[2] .. ':' .. (forced or ''), 'PX', ARGV[3])
end
redis.call('SET', KEYS[1], owner .. ':' .. ARGV[2] .. ':' .. since, 'KEEPTTL')
return 1
