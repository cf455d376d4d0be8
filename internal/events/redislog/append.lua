-- Appends a batch of events to a stream, as one entry.
--
-- KEYS[1]  the stream
-- KEYS[2]  the number of the latest batch of the writer
-- ARGV[1]  the number of this batch
-- ARGV[2]  how long the number is kept, in milliseconds
-- ARGV[3]  how many entries the stream keeps, about
-- ARGV[4]  "1" if the writer dropped something before the batch, otherwise ""
-- ARGV[5]  the texts, one in a line
--
-- The entry has the ID of the previous entry (p), the mark of a loss (l) and the texts (e).
-- Returns 1, or 0 if the batch was appended before.

local latest, number, lost = tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(ARGV[1]), ARGV[4]
if latest >= number then
  return 0
end
-- A failover has removed the writer's latest batch; or its number has expired, and the mark is one too many.
if latest < number - 1 then
  lost = '1'
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'p', last and last[1] or '0-0', 'l', lost, 'e', ARGV[5])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
