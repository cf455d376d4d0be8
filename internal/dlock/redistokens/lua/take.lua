-- Takes tokens for requests, in their order: all that one needs, or none.
-- KEYS[7] held by the caller
-- ARGV[2] tokens to make, if there are none yet  ARGV[3] holder
-- ARGV[4] epoch that the client has seen last, or empty  ARGV[5] 1 if the holder will wait
-- ARGV[6] how many tokens the client knows that the holder has, or -1 if others may be on their way
-- ARGV[7] how many tokens of the caller are for these requests, the turn among them if it collects
-- ARGV[8..] those tokens, and then the numbers needed
-- Returns {epoch, tokens made, {holders that are due to be reaped}, {tokens taken}, {token of fence...}},
-- with 'invalid' for a request that can never be served, or {epoch} if the holder has expired,
-- lost tokens, or has some that its client does not know of.
local held, holder, known = KEYS[7], ARGV[3], ARGV[4]

local made, epoch = tonumber(redis.call('HGET', state, 'made') or ''), redis.call('HGET', state, 'epoch')
if not made then
  made, epoch = tonumber(ARGV[2]), digits(micros)
  redis.call('DEL', free, turn, withheld)
  redis.call('HSET', state, 'made', made, 'epoch', epoch)
  for i = 1, made do redis.call('RPUSH', free, i) end
  redis.call('RPUSH', turn, 'turn')
end

-- A client that remembers another epoch proves that data was lost. Whatever was
-- held then has expired one TTL after this state began; the tokens wait until then.
local hold = math.floor(tonumber(epoch) / 1000) + ttl
local lost = known ~= '' and known ~= epoch
if lost and now < hold then redis.call('HSET', state, 'hold', digits(hold)) end
hold = tonumber(redis.call('HGET', state, 'hold') or 0)
if now < hold then
  while redis.call('LMOVE', free, withheld, 'LEFT', 'RIGHT') do end
elseif hold > 0 then
  while redis.call('LMOVE', withheld, free, 'LEFT', 'RIGHT') do end
  redis.call('HDEL', state, 'hold')
end

-- A holder of another epoch comes back under a new name. So does one that has expired and may have lost
-- its tokens, unless it has none: then there is nothing that it could believe in.
local live = expires(holder) > now
local expired = not live and (redis.call('ZSCORE', holders, holder) or redis.call('ZSCORE', reaped, holder))
if lost or expired and (ARGV[6] ~= '0' or redis.call('LLEN', held) > 0) then
  touch()
  return {epoch}
end
-- A failover can bring back what the holder had released. A client that waits
-- would keep it alive, and wait for its own token.
local sure = tonumber(ARGV[6])
if sure >= 0 and redis.call('LLEN', held) > sure then
  touch()
  return {epoch}
end

-- A failover can lose the tokens that were set aside: no request is served with those.
local last, has, collects, spare = 7 + tonumber(ARGV[7]), {}, false, 0
if last > 7 then
  for _, token in ipairs(redis.call('LRANGE', held, 0, -1)) do has[token] = true end
end
for i = 8, last do
  if not has[ARGV[i]] then
    touch()
    return {epoch}
  end
  has[ARGV[i]] = nil -- the new master may have granted the same token again
  if ARGV[i] == 'turn' then collects = true else spare = spare + 1 end
end

local taken, fences = {}, {}
for i = last + 1, #ARGV do
  local n, blocked = tonumber(ARGV[i]), false
  if n > made then
    fences[#fences + 1] = 'invalid'
  else
    local missing = math.max(0, n - spare)
    local available = redis.call('LLEN', free)
    blocked = missing > available
    if not blocked or collects then
      for _ = 1, math.min(missing, available) do
        taken[#taken + 1] = redis.call('LMOVE', free, held, 'LEFT', 'RIGHT')
        spare = spare + 1
      end
    end
    if not blocked then
      local fence = digits(math.max(tonumber(redis.call('HGET', state, 'fence') or 0) + 1, micros))
      redis.call('HSET', state, 'fence', fence)
      fences[#fences + 1] = fence
      spare = spare - n
    end
  end
  if blocked then break end
end

if #taken > 0 or #fences > 0 or ARGV[5] == '1' or live then
  redis.call('ZADD', holders, now + ttl, holder)
  redis.call('ZREM', reaped, holder)
end
touch()
local due = redis.call('ZRANGEBYSCORE', holders, '-inf', now, 'LIMIT', 0, 4)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', reaped, '-inf', now, 'LIMIT', 0, 4)) do due[#due + 1] = name end
return {epoch, made, due, taken, fences}
