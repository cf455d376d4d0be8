-- Stands before acquire.lua, which a waiter runs once it was signalled, and which
-- finds it in the queue or granted. A waiter that Redis has forgotten is put into
-- the queue by it, unsignalled: a signal may have missed it.
-- ARGV[1] waiter  ARGV[7] its stamp
-- Returns -3 if it waits for a signal.
if redis.call('ZSCORE', asleep, ARGV[1]) then
  remember(ARGV[1], ARGV[7], now())
  return -3
end
