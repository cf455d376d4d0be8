// Every POST is sent again, with its Idempotency-Key and to another instance: after its answer,
// at the same time, or after a client lost its patience long before there was an answer.
// run.sh kills an instance with -9 meanwhile. It proves that
//
//   - a key is one operation: one order, one cancellation, one payment, one extension, one
//     delivery, as the audit counts them, however often and wherever it was sent;
//   - all definite answers of a key are the same to the byte, and all but one say that they
//     are replays; a refusal for want of units stays one when units have come back;
//   - the key with another payload is refused with 422;
//   - every key gets its answer, also those that the killed instance was at work on.
//
// SAFE=no sends no keys, and must end red. k6 exits with 0 if all held, and with 99 if not.
import exec from 'k6/execution';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';
import * as env from './lib/env.js';
import { audits, busy, createSKUs, gone, newRun, once, params, unit } from './lib/api.js';
import { conclude, figures, newCounters } from './lib/outcome.js';

const clients = 12;
const patience = 180; // seconds until a key counts as unanswered
const hurry = 25; // milliseconds that a hasty client has at most
const extension = 60; // seconds
const killAt = Math.floor(env.keys / 4); // keys that were begun when run.sh kills an instance

const counters = newCounters('retries', [
  'sent', 'cut_off', 'done', 'refused', 'replayed', 'different', 'unmarked', 'reused', 'not_refused', 'failed', 'unanswered', 'balanced', 'unbalanced', 'killed',
]);
const unmatched = new Counter('retries_unmatched'); // effects by answers - effects in the books

export const options = {
  throw: true, // a request without an answer is expected here, and no news
  scenarios: {
    repeat: { executor: 'shared-iterations', exec: 'repeat', vus: clients, iterations: env.keys, maxDuration: env.maxDuration },
  },
  thresholds: {
    iterations: [`count==${env.keys}`],
    retries_cut_off: ['count>0'],
    retries_done: ['count>0'],
    retries_refused: ['count>0'],
    retries_replayed: [`count>=${env.keys}`],
    retries_different: ['count==0'],
    retries_unmarked: ['count==0'],
    retries_reused: [`count>=${env.keys}`],
    retries_not_refused: ['count==0'],
    retries_failed: ['count==0'],
    retries_unanswered: ['count==0'],
    retries_balanced: [`count==${env.exact.length + 1}`],
    retries_unbalanced: ['count==0'],
    retries_killed: [`count==${env.dying.length}`],
    'retries_unmatched{what:orders}': ['count==0'],
    'retries_unmatched{what:deliveries}': ['count==0'],
  },
};

export function setup() {
  counters.start();
  ['orders', 'deliveries'].forEach((what) => unmatched.add(0, { what }));
  const run = newRun();
  const skus = env.exact.map((s) => `${run}-${s}`);
  // Half of the units that are wanted: the others learn that they are sold out, for good.
  createSKUs(env.urls, skus, Math.ceil(env.keys / (2 * skus.length)), '', (i) => ({ strategy: env.exact[i] }));
  createSKUs(env.urls, [`${run}-delivered`], 1, env.exact[0]);
  return { run, skus, delivered: `${run}-delivered` };
}

let complained = false;

function complain(what, r) {
  if (!complained) console.error(`${what}: ${r.url || ''} ${r.status || r.error} ${r.body || ''}`);
  complained = true;
}

// send makes one request and returns its answer; without one the status is 0.
async function send(url, { name, path, key }, body, timeout) {
  counters.sent.add(1);
  const p = params(name, env.safe ? once(key) : {});
  if (timeout) p.timeout = `${timeout}ms`;
  try {
    return await http.asyncRequest('POST', url + path, body === null ? null : JSON.stringify(body), p);
  } catch (e) {
    return { status: 0, error: String(e) };
  }
}

// definite tells whether an answer says how the operation ended, and not that it is open.
function definite(r) {
  return r.status !== 0 && !busy(r) && !(r.status === 409 && r.json().type === '/docs/problems/request-in-flight');
}

const isReplay = (r) => Object.keys(r.headers).some((k) => k.toLowerCase() === 'idempotent-replayed');

// first sends a request in one of three ways and returns the answers: to several instances at
// once, in a hurry, or like everybody.
async function first(url, request) {
  const way = Math.floor(3 * Math.random());
  if (way === 0) return Promise.all([0, 1, 2].map((turn) => send(url(turn), request, request.body)));
  if (way === 1) {
    const r = await send(url(0), request, request.body, 1 + Math.floor(hurry * Math.random()));
    if (r.status === 0) counters.cut_off.add(1);
    return [r];
  }
  return [await send(url(0), request, request.body)];
}

// until sends body until there is a definite answer, which it returns; or null.
async function until(url, request, body) {
  for (let turn = 1, end = Date.now() + 1000 * patience; Date.now() < end; turn++) {
    const r = await send(url(turn), request, body);
    if (definite(r)) return r;
    sleep(0.05 + 0.1 * Math.random());
  }
  counters.unanswered.add(1);
  console.error(`${request.name} ${request.key}: no answer within ${patience} s`);
  return null;
}

// twice carries out an operation as customers do who do not trust the network, and compares
// what they hear. It returns the answer, or null.
async function twice(url, request) {
  const heard = (await first(url, request)).filter(definite);
  for (let turn = heard.length === 0 ? 0 : 1; turn < 2; turn++) {
    const r = await until((n) => url(turn + n), request, request.body);
    if (r === null) return null;
    heard.push(r);
  }
  const [one] = heard;
  const other = heard.find((r) => r.status !== one.status || r.body !== one.body || r.headers.Location !== one.headers.Location);
  if (other !== undefined) {
    counters.different.add(1);
    complain(`not what ${one.url} answered, ${one.status} ${one.body}`, other);
  }
  const replays = heard.filter(isReplay).length;
  counters.replayed.add(replays);
  if (replays < heard.length - 1) counters.unmarked.add(1);
  if (request.other !== undefined) await misuse(url, request);
  if (one.status >= 200 && one.status <= 299) {
    counters.done.add(1);
  } else if (one.status === 409) {
    counters.refused.add(1);
  } else {
    counters.failed.add(1);
    complain('POST', one);
  }
  return one;
}

// misuse sends another payload with the same key.
async function misuse(url, request) {
  const r = await until(url, request, request.other);
  if (r === null) return;
  if (r.status === 422 && r.json().type === '/docs/problems/idempotency-key-reused') {
    counters.reused.add(1);
    return;
  }
  counters.not_refused.add(1);
  complain('another payload with the same key', r);
}

// after is what a customer does with an order: pay, cancel, or ask for more time.
function after(nth, run, id) {
  const path = `/api/v1/orders/${id}`;
  const key = `${run}-${nth}-after`;
  switch (nth % 3) {
    case 0: return { name: 'POST /api/v1/orders/{id}/pay', path: `${path}/pay`, key, body: { payment_id: key }, other: { payment_id: 'another' } };
    case 1: return { name: 'POST /api/v1/orders/{id}/cancel', path: `${path}/cancel`, key, body: null };
    default: return { name: 'POST /api/v1/orders/{id}/extend', path: `${path}/extend`, key, body: { by_seconds: extension }, other: { by_seconds: 1 } };
  }
}

export async function repeat({ run, skus, delivered }) {
  const nth = exec.scenario.iterationInTest;
  if (nth === killAt) console.info(`${killAt} keys used`); // run.sh waits for this, and kills an instance
  const url = (turn) => env.urls[(nth + turn) % env.urls.length];
  if (nth % 4 === 3) {
    const restock = { name: 'POST /api/v1/skus/{sku}/restock', path: `/api/v1/skus/${delivered}/restock`, key: `${run}-${nth}-restock` };
    const r = await twice(url, { ...restock, body: { quantity: 1 }, other: { quantity: 2 } });
    if (r !== null && r.status === 200) unmatched.add(1, { what: 'deliveries' });
  }
  const customer = `${run}-${nth}`;
  const items = unit(skus[nth % skus.length]);
  const placed = await twice(url, {
    name: 'POST /api/v1/orders', path: '/api/v1/orders', key: customer,
    body: { customer_id: customer, items }, other: { customer_id: customer, items: [{ ...items[0], quantity: 2 }] },
  });
  if (placed === null || placed.status !== 201) return;
  unmatched.add(1, { what: 'orders' });
  const { id, expires_at: expires } = placed.json();
  const ended = await twice(url, after(nth, run, id));
  if (ended === null || ended.status !== 200) return;
  const o = ended.json();
  if (o.status === 'CANCELLED') unmatched.add(-1, { what: 'orders' });
  const extended = nth % 3 === 2 ? 1000 * extension : 0;
  const moved = Date.parse(o.expires_at) - Date.parse(expires);
  if (o.status === 'PENDING' && moved !== extended) {
    counters.different.add(1);
    complain(`moved by ${moved} ms`, ended);
  }
}

export function teardown({ skus, delivered }) {
  counters.killed.add(env.dying.filter(gone).length); // nobody else says whether it was
  for (const books of audits(env.survivors, [...skus, delivered])) {
    counters[books.ok ? 'balanced' : 'unbalanced'].add(1);
    if (books.sku === delivered) unmatched.add(1 - books.stocked, { what: 'deliveries' });
    else unmatched.add(-books.accepted, { what: 'orders' });
  }
}

export function handleSummary(data) {
  const { count } = figures(data, 'retries');
  const killed = count('killed');
  const though = killed > 0 ? `, though ${killed} of the instances was killed -9` : '';
  return conclude(data, env, {
    name: 'retries',
    row: {
      killed,
      operations: count('done') + count('refused'),
      requests: count('sent'),
      cut_off: count('cut_off'),
      replayed: count('replayed'),
      different: count('different'),
      unmarked: count('unmarked'),
      other_payload: count('reused'),
      failed: count('failed'),
      unanswered: count('unanswered'),
      unbalanced: count('unbalanced'),
    },
    proved: `${count('done') + count('refused')} operations were carried out once and answered the same, wherever and however often they were sent${though}`,
    note: 'cut off = clients who did not wait for the answer; unmarked = answers beyond the first that do not\n'
      + 'say that they are replays; other payload = refusals of a key that was used for something else',
  });
}
