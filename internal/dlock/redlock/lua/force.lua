-- Frees the lock of this server, whoever has it, and makes the last token one that no
-- holder of before has.
-- KEYS[1] lock  KEYS[2] fence
-- ARGV[1] TTL of the fence in ms
-- Returns 1 if anybody had the lock, otherwise 0.
local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local owner, token = string.match(held, '^(.*):(%d+):%d+$') -- neither, if no client has written it
local t = redis.call('TIME')
local last, forced = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+):(.*)$')
token = math.max((tonumber(token) or 0) + 1, (tonumber(last) or 0) + 1, tonumber(t[1] .. string.format('%06d', t[2])))
redis.call('SET', KEYS[2], string.format('%.0f', token) .. ':' .. (owner or forced or ''), 'PX', ARGV[1])
redis.call('DEL', KEYS[1])
return 1
