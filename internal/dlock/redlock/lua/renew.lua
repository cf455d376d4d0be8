-- Gives locks a new TTL. Never inserts: what is gone stays gone.
return each(function(lock) redis.call('PEXPIRE', lock, ARGV[1]) end)
