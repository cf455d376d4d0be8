-- Takes the key from its writer, or from all of its readers, and begins the next
-- phase. The fence moves on, so that it stays in force for resources that have not
-- seen the next holder yet, and the last token of the forced is kept for their renewals.
-- ARGV[6] owner of the next fence
-- Returns what admit.lua does.
if writer() or not no_reader() then
  redis.call('HSET', state, 'forced', redis.call('HGET', state, 'fence'), 'owner', ARGV[6])
  grown('fence')
  redis.call('HDEL', state, 'writer', 'until')
  redis.call('DEL', readers)
end
return {pump('')}
