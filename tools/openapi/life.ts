// Runs the life of an order with a client that is generated from the description of the API alone.
// Usage: node .out/life.js URL

import assert from 'node:assert/strict';

import createClient from 'openapi-fetch';

import type { components, paths } from './api.gen.js';

const baseUrl = process.argv[2];
assert(baseUrl, 'usage: node life.js URL');
const api = createClient<paths>({ baseUrl });

const created = await api.PUT('/api/v1/skus/{sku}', {
  params: { path: { sku: 'ticket' } },
  body: { on_hand: 2, strategy: 'conditional' },
});
assert.equal(created.data?.available, 2);

// A retry with the same key gets the first response again.
const place = () => api.POST('/api/v1/orders', {
  params: { header: { 'Idempotency-Key': 'cart-17' } },
  body: { customer_id: 'c1', items: [{ sku: 'ticket', quantity: 1 }] },
});
const first = await place();
const second = await place();
assert(first.data, JSON.stringify(first.error));
assert.deepEqual(second.data, first.data);
assert.equal(first.response.headers.get('Idempotent-Replayed'), null);
assert.equal(second.response.headers.get('Idempotent-Replayed'), 'true');
const path = { id: first.data.id };

// The type of a problem decides which fields it has.
const short = await api.POST('/api/v1/orders', { body: { customer_id: 'c2', items: [{ sku: 'ticket', quantity: 2 }] } });
assert(short.error?.type === '/docs/problems/out-of-stock', JSON.stringify(short.error));
assert.equal(short.error.shortages[0]?.available, 1);

const paid = await api.POST('/api/v1/orders/{id}/pay', { params: { path }, body: { payment_id: 'p1' } });
assert.equal(paid.data?.status, 'CONFIRMED');

const cancelled = await api.POST('/api/v1/orders/{id}/cancel', { params: { path } });
assert(cancelled.error?.type === '/docs/problems/order-state-conflict', JSON.stringify(cancelled.error));
assert.equal(cancelled.error.state, 'CONFIRMED');

const read = await api.GET('/api/v1/orders/{id}', { params: { path } });
assert.equal(read.data?.status, 'CONFIRMED');

const moved = await api.GET('/api/v1/orders/{id}/movements', { params: { path } });
assert.deepEqual(moved.data?.movements.map((m) => m.movement), ['RESERVE', 'CONFIRM']);

const audit = await api.GET('/api/v1/audit');
assert(audit.data?.ok, JSON.stringify(audit.data));

// The events of a stream have types, though no client is generated for the stream.
const stream = await fetch(`${baseUrl}/api/v1/events?types=order`);
const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
let text = '';
while (!/^data: .*\n/m.test(text)) {
  const { value, done } = await reader.read();
  assert(!done, `the stream has ended after ${text}`);
  text += value;
}
await reader.cancel();
const event: components['schemas']['EventStream'] = JSON.parse(/^data: (.*)$/m.exec(text)![1]!);
assert('reason' in event && event.reason === 'start', text);

console.log(`order ${path.id}: placed once, paid, not cancelled, audited`);
