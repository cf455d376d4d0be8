-- Gives back what a holder has and its client does not know of.
-- KEYS[7] held by it
-- ARGV[2..] tokens that the client knows of
-- Returns how many those were.
local known, n = {}, 0
for i = 2, #ARGV do known[ARGV[i]] = true end
for _, token in ipairs(redis.call('LRANGE', KEYS[7], 0, -1)) do
  if not known[token] then n = n + give(KEYS[7], token) end
end
touch()
return n
