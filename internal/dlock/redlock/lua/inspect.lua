-- KEYS[1] lock
-- Returns OWNER:TOKEN:TIME or '', and for how many ms.
return {redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1])}
