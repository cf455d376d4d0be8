-- Renews the lease of one instance, and divides the permits anew.
-- KEYS[1] hash: instance -> GRANTED:WANTED:EXPIRES:CALL; ':limit' number of permits, if it was resized;
--         ':hold' until when nobody grows, and ':wait' for how many ms; ':ttl' the longest of all leases
-- ARGV[1] instance  ARGV[2] permits that it cannot do without now  ARGV[3] permits that it wants
-- ARGV[4] TTL in ms  ARGV[5] number of permits, unless resized
-- ARGV[6] for how many ms nobody grows if the store has no lease
-- ARGV[7] number of this call: they grow, and one that was overtaken by a later one changes nothing
-- Returns {granted, target, permits, held by all, instances}. Granted may exceed the target: the
-- instance gives up the difference as soon as it can, and says so by its next call.
local me, have, want, ttl, call = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[7])
local limit, hold, known, others = tonumber(ARGV[5]), 0, false, 0
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local names, wants = {me}, {[me] = want}
local wait, longest = unpack(redis.call('HMGET', KEYS[1], ':wait', ':ttl'))
longest = math.max(ttl, longest or 0)
local state = redis.call('HGETALL', KEYS[1])
for i = 1, #state, 2 do
  local name, value = state[i], state[i + 1]
  if name == ':limit' then limit = tonumber(value)
  elseif name == ':hold' then
    hold = tonumber(value)
    if wait and hold > now + wait then -- from before the clock was set back
      hold = now + wait
      redis.call('HSET', KEYS[1], ':hold', string.format('%.0f', hold))
    end
  elseif name == ':wait' or name == ':ttl' then -- above
  else
    local granted, wanted, expires, last = string.match(value, '^(%d+):(%d+):(%d+):(%d+)$')
    if expires and tonumber(expires) > now + longest then -- from before the clock was set back: it may be dead
      expires = now + longest
      redis.call('HSET', KEYS[1], name, string.format('%s:%s:%.0f:%s', granted, wanted, expires, last))
    end
    if not expires or tonumber(expires) <= now then redis.call('HDEL', KEYS[1], name)
    elseif name == me then
      if tonumber(last) >= call then return redis.error_reply('ERR a later call was faster') end
      known = true
      have = math.min(have, tonumber(granted))
    else
      names[#names + 1], wants[name] = name, tonumber(wanted)
      others = others + tonumber(granted)
    end
  end
end

-- The store knows no lease, and others may serve permits: it has no data, or was away. Until all have come
-- back with what they have, what is free cannot be known.
if #names == 1 and not known and hold <= now then
  hold = now + tonumber(ARGV[6])
  redis.call('HSET', KEYS[1], ':hold', string.format('%.0f', hold), ':wait', ARGV[6])
end
if not known then have = math.max(0, math.min(have, limit - others)) end

-- Max-min fairness: everybody has what it wants, but no more than an equal part of what those who want
-- less have left. Of fewer permits than instances those are next whose turn it is.
local n = #names
table.sort(names)
local turn = math.floor(now / (ttl / 3))
local rank = {}
for i, name in ipairs(names) do rank[name] = (i + (limit < n and turn or 0)) % n end
table.sort(names, function(a, b)
  if limit >= n and wants[a] ~= wants[b] then return wants[a] < wants[b] end
  return rank[a] < rank[b]
end)
local rest, part, equal, missing = limit, {}, math.floor(limit / n), 0
for i, name in ipairs(names) do
  part[name] = math.min(wants[name], math.floor(rest / (n - i + 1)))
  rest = rest - part[name]
  missing = missing + math.max(0, equal - part[name])
end
-- What nobody wants is kept where it brings each to an equal part.
local short = math.max(0, equal - part[me])
local target = part[me]
if missing > 0 then target = target + math.floor(short * math.min(1, rest / missing)) end

local granted = have
if now >= hold then granted = math.max(have, math.min(target, limit - others)) end
redis.call('HSET', KEYS[1], me, string.format('%.0f:%.0f:%.0f:%.0f', granted, want, now + ttl, call), ':ttl', longest)
redis.call('PEXPIRE', KEYS[1], 86400000)
return {granted, target, limit, others + granted, n}
