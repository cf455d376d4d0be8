-- Undoes what an owner has done, whatever that was: takes it out of the queue, and
-- frees the lock if it has it, with whatever fence it got.
-- KEYS and ARGV[2..5] as in queue.lua
-- ARGV[1] owner
-- Returns 1 if there was anything to rollback, else 0.
local undone = dequeue(ARGV[1])
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^(.*):%d+$') == ARGV[1] then
  pass()
  return 1
end
return undone
