-- Changes the number of permits, and grants what has become free, to 64 waiters at most.
-- ARGV[6] number of permits
redis.call('SET', KEYS[5], ARGV[6])
limit = tonumber(ARGV[6])
evict()
pump('')
return 1
