-- Takes the lock, or queues for it, or says what has become of that: an owner
-- that asks again has one grant, or keeps its place.
-- ARGV[6] owner  ARGV[7] w or r  ARGV[8] 1 to wait, 0 to try  ARGV[9] stamp of this request
-- Returns {'granted', token, owner of the fence}, {'queued'} or {'held'}.
local id, write, wait, stamp = ARGV[6], ARGV[7] == 'w', ARGV[8] == '1', ARGV[9]

local function granted()
  if write and writer() == id then
    redis.call('HSET', state, 'until', digits(now + ttl))
  elseif not write and reads(id) then
    redis.call('ZADD', readers, digits(now + ttl), id)
    keep(readers, ttl)
  else
    return nil
  end
  keep(state, math.max(86400000, 2 * ttl))
  local fence = redis.call('HMGET', state, 'fence', 'owner')
  return {'granted', fence[1], fence[2]}
end

local function waiting()
  if write then return redis.call('ZSCORE', writing, id) end
  return redis.call('ZSCORE', reading, id) or redis.call('ZSCORE', phase, id)
end

local function free()
  if writer() or redis.call('EXISTS', writing, reading, phase) > 0 then return false end
  return not write or no_reader()
end

local function remember()
  redis.call('HSET', waits, id, digits(now) .. ':' .. digits(first) .. ':' .. stamp)
  for i = 3, 6 do keep(KEYS[i], waiterTTL) end
end

local function enter()
  local fence = write and grant_write(id, ttl) or grant_read(id, ttl)
  return {'granted', fence[1], fence[2]}
end

local mine = granted()
if mine then return mine end
if free() then return enter() end
if waiting() then remember() end
pump(id)
mine = granted()
if mine then return mine end
if waiting() then return {'queued'} end
if free() then return enter() end
if not wait then return {'held'} end
redis.call('ZADD', write and writing or reading, grown('ticket'), id)
keep(state, math.max(86400000, 2 * ttl))
remember()
return {'queued'}
