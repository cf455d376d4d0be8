-- KEYS[1] pending
-- digits writes a whole number with all of its digits: Lua itself stops at fourteen.
local function digits(n) return string.format('%.0f', n) end
-- head returns the earliest moment as a number, or nil.
local function head() return tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]) end
