-- Lets leases end later, never sooner, and makes none.
-- KEYS[1] leased  ARGV[1] lease in ms  ARGV[2..] members
-- Returns how many there were: ZADD alone does not count a lease that needs no change.
local till = digits(math.floor(clock() / 1000) + ARGV[1])
local scores, add = redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 2)), {}
for i, score in ipairs(scores) do
  if score then
    add[#add + 1] = till
    add[#add + 1] = ARGV[i + 1]
  end
end
if #add > 0 then redis.call('ZADD', KEYS[1], 'XX', 'GT', unpack(add)) end
return #add / 2
