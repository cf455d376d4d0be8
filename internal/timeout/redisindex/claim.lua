-- Lends what is due: first what was lent and has not been answered in time, then
-- what is pending. Both sets are read from their beginning, never from a cursor.
-- KEYS[1] pending  KEYS[2] leased  KEYS[3] fence  KEYS[4] complete
-- ARGV[1] limit  ARGV[2] lease in ms  ARGV[3] number of shards
-- Returns {now in ms, earliest moment that is left or '', 'wiped' or '', members lent...}.
local micros = clock()
local now = math.floor(micros / 1000)
local limit = tonumber(ARGV[1])
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', digits(now), 'LIMIT', 0, limit)
local room, due = limit - #expired, {}
if room > 0 then
  due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now), 'WITHSCORES', 'LIMIT', 0, room)
end
local reply = {digits(now), '', ''}
if redis.call('GET', KEYS[4]) ~= ARGV[3] then reply[3] = 'wiped' end

if #expired + #due > 0 then
  local last = tonumber(redis.call('GET', KEYS[3]) or 0)
  local token = digits(math.max(last + 1, micros))
  redis.call('SET', KEYS[3], token)
  local till, lent = digits(now + ARGV[2]), {}
  local function lend(member)
    reply[#reply + 1] = member
    lent[#lent + 1] = till
    lent[#lent + 1] = member
  end
  local seen, ids = {}, {}
  for _, member in ipairs(expired) do
    local attempt, moment, id = string.match(member, '^%d+|(%d+)|(%-?%d+)|(.*)$')
    if not seen[id] then
      seen[id] = true
      lend(token .. '|' .. digits(attempt + 1) .. '|' .. moment .. '|' .. id)
    end
  end
  for i = 1, #due, 2 do
    local id = due[i]
    ids[#ids + 1] = id
    if not seen[id] then lend(token .. '|1|' .. digits(tonumber(due[i + 1])) .. '|' .. id) end
  end
  -- The leases come first: a script that failed half-way would rather lend twice.
  redis.call('ZADD', KEYS[2], unpack(lent))
  if #expired > 0 then redis.call('ZREM', KEYS[2], unpack(expired)) end
  if #ids > 0 then redis.call('ZREM', KEYS[1], unpack(ids)) end
end

local next = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if next then reply[2] = digits(tonumber(next)) end
return reply
