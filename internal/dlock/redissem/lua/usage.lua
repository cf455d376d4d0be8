-- Counts, and changes nothing: what has expired is not dropped, only left out.
-- Returns {number of permits, permits that are held, waiters}.
return {limit, redis.call('ZCOUNT', holders, '(' .. now, '+inf'), redis.call('ZCARD', queue)}
