// Random baskets of several SKUs, in opposite orders, some with a SKU twice, by customers who
// take turns at all instances. It proves that
//
//   - a basket is reserved as a whole or not at all: of each SKU the units of the answers 201
//     are those that the audit finds, to the unit, and what was refused holds nothing;
//   - opposite orders make no deadlock storm: every basket gets an answer, none a 5xx but
//     those that say busy, which had no effect and are asked again, and these are few;
//   - a refusal names every short SKU, each with what was wanted and what there was;
//   - no customer gets more of a SKU than its purchase limit.
//
// Half of the customers who got a basket give it back, so that the stock stays in motion.
// k6 exits with 0 if all that held, and with 99 if not.
import exec from 'k6/execution';
import { Counter, Rate } from 'k6/metrics';
import * as env from './lib/env.js';
import { ask, audits, batch, cancel, createSKUs, newRun, once, ordersOf, params, pay, placeOrder } from './lib/api.js';
import { conclude, figures, newCounters } from './lib/outcome.js';

const kinds = 8; // SKUs
const onHand = Math.ceil(env.baskets / 5); // of each: fewer than are wanted
const limit = 12; // units that a customer may buy of half of the SKUs
const limited = (nth) => nth % 4 < 2; // whether a SKU has that limit
const unlimited = [2, 3, 6, 7];
const people = Math.ceil(env.baskets / 25); // customers
const probes = 16; // baskets that are judged when nothing else moves

const counters = newCounters('baskets', ['placed', 'short', 'over_limit', 'failed', 'misnamed', 'probed', 'beyond_limit', 'balanced', 'unbalanced']);
const unmatched = new Counter('baskets_unmatched'); // by SKU: units of answers - units of the books
const busyRate = new Rate('baskets_busy');

export const options = {
  scenarios: {
    shop: { executor: 'shared-iterations', exec: 'shop', vus: env.buyers, iterations: env.baskets, maxDuration: env.maxDuration },
  },
  thresholds: {
    baskets_placed: ['count>0'],
    baskets_short: ['count>0'], // or nothing shows that a basket was ever refused
    baskets_over_limit: ['count>0'],
    baskets_failed: ['count==0'],
    baskets_misnamed: ['count==0'],
    baskets_probed: [`count==${probes}`],
    baskets_beyond_limit: ['count==0'],
    baskets_balanced: [`count==${kinds}`],
    baskets_unbalanced: ['count==0'],
    baskets_busy: ['rate<0.5'], // of a storm nearly all are
    ...Object.fromEntries(Array.from({ length: kinds }, (_, i) => [`baskets_unmatched{nth:${i}}`, ['count==0']])),
    'http_req_duration{name:POST /api/v1/orders}': ['max>=0'], // always true: it makes the series exist
    iterations: [`count==${env.baskets}`],
  },
  summaryTrendStats: ['med', 'p(99)', 'max'],
};

export function setup() {
  counters.start();
  const run = newRun();
  const skus = Array.from({ length: kinds }, (_, i) => `${run}-${i}`);
  createSKUs(env.urls, skus, onHand, '', (i) => ({ strategy: env.exact[i % env.exact.length], purchase_limit: limited(i) ? limit : 0 }));
  skus.forEach((_, nth) => unmatched.add(0, { nth: String(nth) }));
  return { run, skus };
}

const below = (n) => Math.floor(n * Math.random());

// choose returns a basket: 2 to 5 SKUs, up or down the list, and now and then one twice.
function choose(skus, down) {
  const items = skus.map((sku) => ({ sku, at: Math.random() })).sort((a, b) => a.at - b.at).slice(0, 2 + below(4))
    .map(({ sku }) => ({ sku, quantity: 1 + below(3) })).sort((a, b) => (a.sku < b.sku ? -1 : 1));
  if (below(3) === 0) items.push({ sku: items[0].sku, quantity: 1 });
  return down ? items.reverse() : items;
}

// merge returns what a basket wants of each SKU.
function merge(items) {
  const wanted = new Map();
  for (const { sku, quantity } of items) wanted.set(sku, (wanted.get(sku) || 0) + quantity);
  return wanted;
}

const same = (items, wanted) => items.length === wanted.size && items.every((i) => wanted.get(i.sku) === i.quantity);

let complained = false;

function fail(what, r) {
  counters.failed.add(1);
  if (!complained) console.error(`${what} ${r.url}: ${r.status || r.error} ${r.body || ''}`);
  complained = true;
}

function misname(r, wanted) {
  counters.misnamed.add(1);
  if (!complained) console.error(`wanted ${JSON.stringify([...wanted])}: ${r.body}`);
  complained = true;
}

// plausible tells whether each shortage is one: of a SKU of the basket, once, with what was
// wanted of it, and with less than that available.
function plausible(shortages, wanted) {
  return shortages.length > 0 && new Set(shortages.map((s) => s.sku)).size === shortages.length
    && shortages.every((s) => s.requested === wanted.get(s.sku) && s.available < s.requested);
}

function refused(r, wanted) {
  const { type, shortages, exceeded } = r.json();
  if (type === '/docs/problems/out-of-stock') {
    counters.short.add(1);
    if (!plausible(shortages || [], wanted)) misname(r, wanted);
  } else if (type === '/docs/problems/purchase-limit') {
    counters.over_limit.add(1);
    if (exceeded.limit !== limit || !(exceeded.had + wanted.get(exceeded.sku) > limit)) misname(r, wanted);
  } else {
    fail('POST', r);
  }
}

export function shop({ run, skus }) {
  const nth = exec.scenario.iterationInTest;
  const url = (turn) => env.urls[(nth + turn) % env.urls.length];
  const items = choose(skus, nth % 2 === 1);
  const wanted = merge(items);
  const count = (sign) => wanted.forEach((n, sku) => unmatched.add(sign * n, { nth: String(skus.indexOf(sku)) }));
  const r = ask(() => placeOrder(url(0), `${run}-${below(people)}`, items, once(`${run}-${nth}`)), (a) => busyRate.add(a.status === 503));
  if (r.status === 409) return refused(r, wanted);
  if (r.status !== 201) return fail('POST', r);
  counters.placed.add(1);
  count(1);
  const { id, items: reserved } = r.json();
  if (!same(reserved, wanted)) misname(r, wanted);
  const end = nth % 4 < 2 ? ask(() => cancel(url(1), id)) : ask(() => pay(url(1), id, `${run}-${nth}`));
  if (end.status !== 200) return fail('POST', end);
  if (nth % 4 < 2) count(-1);
  return undefined;
}

// probe asks for baskets that cannot be had while nothing else moves, and so knows which
// SKUs are short: exactly these must be named.
function probe(run, skus) {
  const levels = batch(env.urls, skus, (url, sku) => ['GET', `${url}/api/v1/skus/${sku}`, null, params('GET /api/v1/skus/{sku}')]);
  for (let i = 0; i < probes; i++) {
    const short = levels.filter((l, n) => n === unlimited[i % unlimited.length] || l.available < 1
      || (below(3) === 0 && !(limited(n) && l.available >= limit)));
    const items = levels.map((l) => ({ sku: l.sku, quantity: short.includes(l) ? Math.max(0, l.available) + 1 : 1 }));
    if (i % 2 === 1) items.reverse();
    const r = ask(() => placeOrder(env.urls[i % env.urls.length], `${run}-probe`, items, once(`${run}-probe-${i}`)));
    const want = short.map((l) => `${l.sku} ${Math.max(0, l.available) + 1} ${Math.max(0, l.available)}`).sort().join();
    const got = ((r.status === 409 && r.json().shortages) || []).map((s) => `${s.sku} ${s.requested} ${s.available}`).sort().join();
    counters.probed.add(1);
    if (want !== got) misname(r, merge(items));
  }
}

export function teardown({ run, skus }) {
  probe(run, skus);
  audits(env.urls, skus).forEach((books, nth) => {
    unmatched.add(-books.accepted, { nth: String(nth) });
    if (books.ok && books.stocked === onHand) counters.balanced.add(1);
    else counters.unbalanced.add(1);
  });
  for (const sku of skus.filter((_, n) => limited(n))) {
    const has = {};
    for (const o of ordersOf(env.urls[0], sku)) {
      if (o.status !== 'PENDING' && o.status !== 'CONFIRMED') continue;
      has[o.customer_id] = (has[o.customer_id] || 0) + o.items.find((i) => i.sku === sku).quantity;
    }
    counters.beyond_limit.add(Object.values(has).filter((n) => n > limit).length);
  }
}

export function handleSummary(data) {
  const { count, value } = figures(data, 'baskets');
  const took = (data.metrics['http_req_duration{name:POST /api/v1/orders}'] || { values: {} }).values;
  return conclude(data, env, {
    name: 'baskets',
    row: {
      baskets: env.baskets,
      placed: count('placed'),
      short: count('short'),
      over_limit: count('over_limit'),
      failed: count('failed'),
      misnamed: count('misnamed'),
      unbalanced: count('unbalanced'),
      busy_percent: 100 * (value('busy', 'rate') || 0),
      p50_ms: took.med === undefined ? null : took.med,
      p99_ms: took['p(99)'] === undefined ? null : took['p(99)'],
    },
    proved: `${env.baskets} baskets in opposite orders were reserved as a whole or not at all, and refusals named all that was short`,
    note: 'busy = answers 503 of all, which had no effect and were asked again',
  });
}
