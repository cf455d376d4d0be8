-- Lets more in: readers of a large phase, or whoever waits behind many dead writers.
-- Returns {1 if there are still more, else 0}.
return {pump('')}
