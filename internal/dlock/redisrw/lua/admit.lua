-- Lets more readers of a large phase in.
-- Returns {1 if there are still more, else 0}.
return {pump('')}
