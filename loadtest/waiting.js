// Customers who would rather wait. Of sold-out SKUs, more of them wait with Prefer: wait=N
// than units come back; and a SKU whose guard is contended is ordered with wait=0 and with
// respond-async. It proves that
//
//   - every unit that somebody gives back is sold to somebody who waits, at whichever instance;
//   - nobody waits for longer than N seconds and a margin, and nobody is sent away earlier;
//   - those who wait are served in the order in which they came, as far as one can tell from
//     outside: the share of pairs in the wrong order is shown, and bounded;
//   - with wait=0 a busy guard is said at once, with Retry-After, and has no effect;
//   - with respond-async such an order is QUEUED, and ends as PENDING or REJECTED, unless it
//     is cancelled before; the audit finds the units of those that were placed and no others.
//
// It needs instances with --redis. SAFE=no does not ask to wait, and must end red. k6 exits
// with 0 if all held, and with 99 if not.
import exec from 'k6/execution';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';
import * as env from './lib/env.js';
import { ask, audits, busy, cancel, createSKUs, movements, newRun, once, order, ordersOf, params, pause, placeOrder, placeOrders, unit } from './lib/api.js';
import { conclude, figures, newCounters } from './lib/outcome.js';

const gap = 0.06; // seconds from one waiter to the next
const settled = env.waiters * gap + 1; // seconds until all are in line
const margin = 20; // seconds
const hotBuyers = 192; // more than the lock serves within the 50 ms that wait=0 waits
const hotOrders = 960;
const hotStock = 480;
const hotAfter = settled + 2; // seconds: those who wait have been served, if all is well
const patience = 60; // seconds until a queued order counts as forgotten
const apart = 200; // milliseconds between two customers of whom one can tell who came first

const counters = newCounters('waiting', [
  'given_back', 'sold', 'left_empty', 'sent_away', 'balanced', 'unbalanced',
  'at_once', 'queued', 'queue_placed', 'queue_rejected', 'queue_cancelled', 'queue_forgotten', 'wrong',
]);
const unmatched = new Counter('waiting_unmatched'); // units of answers - units of the books
const waited = new Trend('waiting_time', true);
const handoff = new Trend('waiting_handoff', true);
const atOnce = new Trend('waiting_busy', true);
const outOfOrder = new Rate('waiting_out_of_order');

if (env.waiters <= env.units) throw new Error('want more WAITERS than UNITS: some must wait in vain');

export const options = {
  batch: env.units,
  batchPerHost: env.units,
  scenarios: {
    wait: { executor: 'per-vu-iterations', exec: 'wait', vus: env.waiters, iterations: 1, maxDuration: env.maxDuration },
    give: { executor: 'shared-iterations', exec: 'give', vus: 4, iterations: env.units, startTime: `${settled}s`, maxDuration: env.maxDuration },
    hot: { executor: 'shared-iterations', exec: 'hot', vus: hotBuyers, iterations: hotOrders, startTime: `${hotAfter}s`, maxDuration: env.maxDuration },
  },
  thresholds: {
    iterations: [`count==${env.waiters + env.units + hotOrders}`],
    waiting_given_back: [`count==${env.units}`],
    waiting_sold: [`count==${env.units}`],
    waiting_left_empty: [`count==${env.waiters - env.units}`],
    waiting_sent_away: ['count==0'],
    waiting_time: [`max<${1000 * (env.waits + margin)}`],
    waiting_handoff: ['max<20000'],
    waiting_out_of_order: ['rate<=0.25'], // without any order it is about a half
    waiting_at_once: ['count>0'],
    waiting_busy: ['med<5000'], // half of what a request may take
    waiting_queued: ['count>0'],
    waiting_queue_placed: ['count>0'],
    waiting_queue_forgotten: ['count==0'],
    waiting_wrong: ['count==0'],
    waiting_unmatched: ['count==0'],
    waiting_balanced: [`count==${env.exact.length + 1}`],
    waiting_unbalanced: ['count==0'],
  },
  summaryTrendStats: ['min', 'med', 'p(99)', 'max'],
};

export function setup() {
  counters.start();
  const run = newRun();
  const skus = env.exact.map((s) => `${run}-${s}`);
  const given = Array.from({ length: env.units }, (_, i) => skus[i % skus.length]);
  createSKUs(env.urls, skus, 0, '', (i) => ({ strategy: env.exact[i], on_hand: given.filter((sku) => sku === skus[i]).length }));
  createSKUs(env.urls, [`${run}-hot`], hotStock, 'sql');
  createSKUs(env.urls, [`${run}-vain`], env.waiters, env.exact[0]);
  return { run, skus, began: Date.now(), hotSKU: `${run}-hot`, held: placeOrders(env.urls, given, run).map((o) => o.id) };
}

let complained = false;

function complain(what, r) {
  if (!complained) console.error(`${what}: ${r.url || ''} ${r.status || r.error} ${JSON.stringify(r.headers)} ${r.body || ''}`);
  complained = true;
}

function wrong(what, r) {
  counters.wrong.add(1);
  complain(what, r);
}

// buy asks for a unit with preferences, again if the service is too busy: nothing happened then, or the key tells. That a guard is
// busy is an answer for one who waits for nothing.
function buy(url, customer, sku, prefer) {
  const body = JSON.stringify({ customer_id: customer, items: unit(sku) });
  const p = params('POST /api/v1/orders', { ...once(customer), ...(prefer === '' ? {} : { Prefer: prefer }) });
  p.timeout = `${env.waits + 30}s`;
  for (;;) {
    const r = http.post(`${url}/api/v1/orders`, body, p);
    if (!busy(r) || (prefer === 'wait=0' && typeOf(r) === '/docs/problems/lock-timeout')) return r;
    pause();
  }
}

const typeOf = (r) => (r.status >= 400 ? r.json().type : '');
const applied = (r) => r.headers['Preference-Applied'] || '';

// wait is one customer, who comes a moment after the one before.
export function wait({ run, skus, began }) {
  const nth = exec.scenario.iterationInTest; // ids of VUs are those of all scenarios
  const rank = String(nth).padStart(4, '0');
  sleep(gap * Number(rank));
  const prefer = env.safe ? `wait=${env.waits}` : '';
  const url = env.urls[nth % env.urls.length];
  const customer = `${run}-waiter-${rank}-${Date.now() - began}`; // teardown learns from it when this one came
  const r = buy(url, customer, skus[Number(rank) % skus.length], prefer);
  waited.add(r.timings.duration);
  if (r.status === 201) {
    counters.sold.add(1);
    unmatched.add(1);
  } else if (typeOf(r) !== '/docs/problems/out-of-stock') {
    wrong('wait', r);
  } else if (r.timings.duration < 1000 * env.waits - 100) {
    counters.sent_away.add(1);
  } else {
    counters.left_empty.add(1);
  }
  if (r.status !== 201) ask(() => placeOrder(url, customer, unit(`${run}-vain`), once(`${customer}-vain`)));
  if (env.safe && applied(r) !== prefer) wrong('no Preference-Applied', r);
}

// give cancels one of the orders that hold all units.
export function give({ held }) {
  const nth = exec.scenario.iterationInTest;
  const r = ask(() => cancel(env.urls[nth % env.urls.length], held[nth]));
  if (r.status === 200) counters.given_back.add(1);
  else complain('cancel', r);
  sleep(0.05);
}

// hot is one of many who want units under the same lock at the same time.
export function hot({ run, hotSKU }) {
  const nth = exec.scenario.iterationInTest;
  const url = (turn) => env.urls[(nth + turn) % env.urls.length];
  const async = nth % 2 === 1;
  const r = buy(url(0), `${run}-hot-${nth}`, hotSKU, async ? 'respond-async' : 'wait=0');
  if (r.status === 201) {
    unmatched.add(1);
  } else if (async && r.status === 202) {
    queued(url, nth, r);
  } else if (!async && r.status === 503 && typeOf(r) === '/docs/problems/lock-timeout') {
    counters.at_once.add(1);
    atOnce.add(r.timings.duration);
    if (!/^[1-9]\d*$/.test(r.headers['Retry-After'] || '')) wrong('no Retry-After', r);
  } else if (typeOf(r) !== '/docs/problems/out-of-stock') {
    wrong('hot', r);
  }
  if (!async && applied(r) !== 'wait=0') wrong('no Preference-Applied', r);
}

// queued looks what becomes of an order that was queued, at another instance. Every fifth
// customer has second thoughts.
function queued(url, nth, r) {
  counters.queued.add(1);
  const o = r.json();
  if (o.status !== 'QUEUED' || applied(r) !== 'respond-async' || r.headers.Location !== `/api/v1/orders/${o.id}`) wrong('202', r);
  if (nth % 10 === 1) {
    const c = ask(() => cancel(url(1), o.id));
    if (c.status !== 200 && typeOf(c) !== '/docs/problems/order-state-conflict') wrong('cancel', c);
  }
  let now = r;
  for (let end = Date.now() + 1000 * patience; Date.now() < end; pause()) {
    now = ask(() => order(url(1), o.id));
    if (now.status !== 200 || now.json().status !== 'QUEUED') break;
  }
  const { status, reason } = now.json();
  if (status === 'PENDING') {
    counters.queue_placed.add(1);
    unmatched.add(1);
  } else if (status === 'REJECTED' && (reason === 'out-of-stock' || reason === 'not-placed-in-time')) {
    counters.queue_rejected.add(1);
  } else if (status === 'CANCELLED' && nth % 10 === 1) {
    counters.queue_cancelled.add(1);
  } else {
    counters.queue_forgotten.add(1);
    complain('queued', now);
  }
}

// times returns when each of many orders moved its unit, by the clock of the database.
function times(ids, movement) {
  return movements(env.urls, ids).map((events) => Date.parse(events.find((e) => e.movement === movement).at));
}

// compare looks in which order the waiters of a SKU were served, and how soon a unit that came
// back was sold. Of two who came at nearly the same time nobody can tell who was first.
function compare(run, sku, orders, vain) {
  const begins = `${run}-waiter-`;
  const bought = orders.filter((o) => o.customer_id.startsWith(begins));
  const at = times(bought.map((o) => o.id), 'RESERVE');
  const who = (o) => o.customer_id.slice(begins.length).split('-').map(Number); // rank, and when it came
  const came = new Map([...bought, ...vain].map(who));
  const served = new Map(bought.map((o, i) => [who(o)[0], at[i]]));
  const line = Array.from({ length: env.waiters }, (_, rank) => rank).filter((rank) => env.exact[rank % env.exact.length] === sku.slice(run.length + 1));
  for (let i = 0; i < line.length; i++) {
    for (let j = i + 1; j < line.length; j++) {
      const [a, b] = [served.get(line[i]), served.get(line[j])];
      if (!(came.get(line[j]) - came.get(line[i]) >= apart)) continue;
      if (a !== undefined || b !== undefined) outOfOrder.add((a === undefined ? Infinity : a) > (b === undefined ? Infinity : b));
    }
  }
  const back = times(orders.filter((o) => o.status === 'CANCELLED').map((o) => o.id), 'RELEASE').sort((a, b) => a - b);
  at.sort((a, b) => a - b).forEach((t, i) => handoff.add(t - back[i]));
}

export function teardown({ run, skus, hotSKU }) {
  for (const books of audits(env.urls, [...skus, hotSKU])) {
    counters[books.ok ? 'balanced' : 'unbalanced'].add(1);
    unmatched.add(-books.accepted);
  }
  const vain = ordersOf(env.urls[0], `${run}-vain`);
  skus.forEach((sku) => compare(run, sku, ordersOf(env.urls[0], sku), vain));
}

export function handleSummary(data) {
  const { count, value } = figures(data, 'waiting');
  return conclude(data, env, {
    name: 'waiting',
    row: {
      waiters: env.waiters,
      given_back: count('given_back'),
      sold: count('sold'),
      in_vain: count('left_empty'),
      sent_away: count('sent_away'),
      out_of_order: value('out_of_order', 'rate'),
      longest_ms: value('time', 'max'),
      handoff_p50_ms: value('handoff', 'med'),
      handoff_max_ms: value('handoff', 'max'),
      'wait=0_busy': count('at_once'),
      busy_p50_ms: value('busy', 'med'),
      queued: count('queued'),
      placed: count('queue_placed'),
      rejected: count('queue_rejected'),
      wrong: count('wrong') + count('queue_forgotten'),
      unbalanced: count('unbalanced'),
    },
    proved: `${count('sold')} units that came back were sold to those who waited, and ${count('queued')} queued orders came to an end`,
    note: 'out of order = share of the pairs of waiters in which the later one was served first;\n'
      + 'handoff = from the moment a unit comes back until it is sold, by the clock of the database',
  });
}
