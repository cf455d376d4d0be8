-- digits writes a whole number with all of its digits: Lua itself stops at fourteen.
local function digits(n) return string.format('%.0f', n) end
-- clock returns the time of the server in microseconds.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
