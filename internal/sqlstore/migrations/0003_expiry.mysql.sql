INSERT IGNORE INTO timeouts (kind, id, lane, due_at, next_at, attempt, state, trace, last_error, created_at)
SELECT 'order.expire', id, 'base', (expires_at + 999) DIV 1000, (expires_at + 999) DIV 1000, 0, 'OPEN', '', '', created_at DIV 1000
FROM orders WHERE status = 'PENDING';
