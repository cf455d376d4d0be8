-- Gives tokens back that the holder has, and no others.
-- KEYS[7] held by it
-- ARGV[2] holder  ARGV[3..] tokens
-- Returns how many it had, or 0 if it had expired.
local n, live = 0, expires(ARGV[2]) > now
for i = 3, #ARGV do n = n + give(KEYS[7], ARGV[i]) end
touch()
return live and n or 0
