-- Changes the number of permits, and grants what has become free, to 64 waiters at most.
-- ARGV[5] number of permits
redis.call('SET', KEYS[5], ARGV[5])
limit = tonumber(ARGV[5])
evict()
pump('')
return 1
