-- Posts an announcement, or renews it, unless there is one with a greater token.
-- KEYS[1] announcement: a string, TOKEN;LEADER
-- ARGV[1] TTL in ms  ARGV[2] TOKEN  ARGV[3] LEADER
-- Returns 1 or 0. Tokens have up to 20 digits, which a number of Lua has not.
local held = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+);')
if held and (#held > #ARGV[2] or #held == #ARGV[2] and held > ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ';' .. ARGV[3], 'PX', ARGV[1])
return 1
