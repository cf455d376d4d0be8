-- Takes an announcement down, if it is this one.
-- KEYS[1] announcement  ARGV[1] TOKEN;LEADER
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
