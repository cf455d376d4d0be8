-- Frees locks, whatever their tokens.
return each(function(lock) redis.call('DEL', lock) end)
