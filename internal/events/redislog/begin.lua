-- Gives an empty stream of events a first entry, without texts.
--
-- KEYS[1]  the stream

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XADD', KEYS[1], '*', 'p', '0-0', 'l', '', 'e', '')
end
return 0
