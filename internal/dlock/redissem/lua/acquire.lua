-- Takes permits, or queues for them, or says what has become of that: an owner
-- that asks again has one grant, or keeps its place.
-- ARGV[5] owner  ARGV[6] number of permits  ARGV[7] 1 to wait, 0 to try
-- ARGV[8] epoch that the client has seen last, or empty  ARGV[9] stamp of this request
-- Returns {'granted', epoch, token}, {'queued', epoch, ''}, {'held', epoch, ''} or {'invalid', epoch, limit}.
local owner, n, wait, known, stamp = ARGV[5], tonumber(ARGV[6]), ARGV[7] == '1', ARGV[8], ARGV[9]

-- The epoch is when this state began. A client that remembers another one proves
-- that data was lost: whatever was held then has expired one TTL after the beginning.
local epoch = redis.call('HGET', state, 'epoch')
if not epoch then
  epoch = digits(micros)
  redis.call('HSET', state, 'epoch', epoch)
end
if known ~= '' and known ~= epoch then
  local hold = math.min(now, math.floor(tonumber(epoch) / 1000)) + ttl
  if hold > tonumber(redis.call('HGET', state, 'hold') or 0) then
    redis.call('HSET', state, 'hold', digits(hold), 'wait', ttl)
  end
end
remember()

evict()
local entry = redis.call('HGET', owners, owner)
if entry and string.match(entry, '^%d+:%d+$') then
  grant(owner, string.match(entry, '^%d+'), n, ttl)
  return {'granted', epoch, string.match(entry, '^%d+')}
end
if n > limit then
  drop(owner)
  pump(owner)
  return {'invalid', epoch, tostring(limit)}
end
if not entry then
  if redis.call('ZCARD', queue) > 0 then pump(owner) end
  if redis.call('ZCARD', queue) == 0 and fits(n) then
    local fence = ticket()
    grant(owner, fence, n, ttl)
    return {'granted', epoch, fence}
  end
  if not wait then
    return {'held', epoch, ''}
  end
  entry = ticket() .. ':' .. n
  redis.call('ZADD', queue, string.match(entry, '^%d+'), owner)
end
-- Until when it lives, and how long it trusts what it is handed, are its own to say.
redis.call('HSET', owners, owner, table.concat({string.match(entry, '^%d+:%d+'),
  digits(now + waiterTTL), digits(waiterTTL * 3 / 2), stamp}, ':'))
touch()
pump(owner)
entry = redis.call('HGET', owners, owner)
if entry and string.match(entry, '^%d+:%d+$') then
  return {'granted', epoch, string.match(entry, '^%d+')}
end
return {'queued', epoch, ''}
