// More buyers than --permits, one greedy customer, and customers who want more than they may
// buy. It proves that
//
//   - who finds all permits in use gets 429 with Retry-After, RateLimit and RateLimit-Policy,
//     and no order: what the audit finds is what the answers 201 promised, though half of the
//     buyers take the 429 for an answer and the others come back with the same key;
//   - payments and cancellations are never limited, however many orders are in flight;
//   - with --customer-rate a greedy customer begins no more orders than the rate allows, and
//     the others are not slowed down;
//   - customers who ask for a SKU many times at once, at all instances, get exactly its
//     purchase limit, and each refusal says so.
//
// k6 exits with 0 if all that held, and with 99 if not: also if nobody saw a 429.
import exec from 'k6/execution';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import * as env from './lib/env.js';
import { ask, audits, busy, cancel, createSKUs, newRun, once, params, pause, pay, placeOrder, placeOrders, unit } from './lib/api.js';
import { conclude, figures, newCounters } from './lib/outcome.js';

const tempted = 6; // customers who want more than they may buy
const limit = 3; // units that each may buy
const wishes = 8; // units that each asks for, one by one and all at once
const greed = 3; // seconds for which one customer asks as often as possible
const patience = 180; // seconds for which customers ask a busy service
const handful = 8; // requests of that customer at the same time
const opened = 40; // orders that are paid or cancelled meanwhile

const counters = newCounters('limits', [
  'concurrency_limited', 'mute', 'sold', 'refused', 'gave_up', 'failed', 'ended', 'end_limited', 'balanced', 'unbalanced',
  'rate_limited', 'rate_exceeded', 'rate_unproved', 'slowed', 'had_all', 'bought_wrong',
]);
const unmatched = new Counter('limits_unmatched'); // units of answers 201 - units of the books
const quick = new Trend('limits_refusal', true);

const perVU = (what, vus) => ({ executor: 'per-vu-iterations', exec: what, vus, iterations: 1, maxDuration: env.maxDuration });

export const options = {
  batch: env.buyers,
  batchPerHost: env.buyers,
  scenarios: {
    sale: { executor: 'shared-iterations', exec: 'buy', vus: env.buyers, iterations: env.attempts, maxDuration: env.maxDuration },
    end: { executor: 'shared-iterations', exec: 'end', vus: 2, iterations: opened, maxDuration: env.maxDuration },
    greed: perVU('grab', 1),
    temptation: perVU('hoard', tempted),
  },
  thresholds: {
    limits_concurrency_limited: ['count>0'],
    limits_mute: ['count==0'],
    limits_sold: ['count>0'],
    limits_failed: ['count==0'],
    limits_ended: [`count==${opened}`],
    limits_end_limited: ['count==0'],
    limits_balanced: [`count==${env.exact.length + 3}`],
    limits_unbalanced: ['count==0'],
    limits_unmatched: ['count==0'],
    limits_rate_exceeded: ['count==0'],
    limits_rate_unproved: ['count==0'],
    limits_slowed: ['count==0'],
    limits_had_all: [`count==${tempted}`],
    limits_bought_wrong: ['count==0'],
  },
  summaryTrendStats: ['med', 'p(99)', 'max'],
};

export function setup() {
  counters.start();
  const run = newRun();
  const skus = env.exact.map((s) => `${run}-${s}`);
  createSKUs(env.urls, skus, env.stock, '', (i) => ({ strategy: env.exact[i] }));
  const [open, few, many] = ['open', 'few', 'many'].map((what) => `${run}-${what}`);
  createSKUs(env.urls, [open, few, many], opened + tempted * wishes, env.exact[0], (i) => (i === 1 ? { purchase_limit: limit } : {}));
  const orders = placeOrders(env.urls, Array(opened).fill(open), run).map((o) => o.id);
  return { run, skus, open, few, many, orders, rate: rateOf(run, many) };
}

// header returns a header of an answer, whose name k6 writes in its own way.
function header(r, name) {
  const key = Object.keys(r.headers).find((k) => k.toLowerCase() === name.toLowerCase());
  return key === undefined ? '' : r.headers[key];
}

// rateOf returns what the deployment says of the rate of a customer, and 0 if it has none.
function rateOf(run, sku) {
  const r = ask(() => placeOrder(env.urls[0], `${run}-probe`, unit(sku), once(`${run}-probe`)));
  if (r.status !== 201) throw new Error(`POST ${r.url}: ${r.status || r.error} ${r.body || ''}`);
  if (ask(() => cancel(env.urls[0], r.json().id)).status !== 200) throw new Error('the first order cannot be cancelled');
  const policy = /"customer";q=(\d+)/.exec(header(r, 'RateLimit-Policy'));
  const rate = policy === null ? 0 : Number(policy[1]) / 2; // twice the rate may come at once
  if (env.customerRate > 0 && rate !== env.customerRate) throw new Error(`CUSTOMER_RATE=${env.customerRate}: the deployment says ${rate}`);
  return rate;
}

const kindOf = (r) => (busy(r) ? r.json().type : '');
const isConcurrencyLimited = (r) => r.status === 429 && kindOf(r) === '/docs/problems/concurrency-limit';
const isRateLimited = (r) => r.status === 429 && kindOf(r) === '/docs/problems/rate-limited';

let complained = false;

function complain(what, r) {
  if (!complained) console.error(`${what}: ${r.url}: ${r.status || r.error} ${JSON.stringify(r.headers)} ${r.body || ''}`);
  complained = true;
}

// hear counts an answer and looks whether a refusal says what it must.
function hear(r) {
  if (r.status !== 429) return;
  const which = isConcurrencyLimited(r) ? 'orders' : 'customer';
  counters[isConcurrencyLimited(r) ? 'concurrency_limited' : 'rate_limited'].add(1);
  quick.add(r.timings.duration);
  const q = new RegExp(`"${which}";q=(\\d+)`).exec(header(r, 'RateLimit-Policy'));
  const says = q !== null && new RegExp(`"${which}";r=\\d+;t=\\d+`).test(header(r, 'RateLimit'))
    && /^[1-9]\d*$/.test(header(r, 'Retry-After'))
    && (which === 'customer' || env.permits === 0 || Number(q[1]) === env.permits);
  if (says) return;
  counters.mute.add(1);
  complain('a refusal that does not say all', r);
}

// buy is one customer who wants one unit. Every other one does not come back after a 429.
export function buy({ run, skus }) {
  const nth = exec.scenario.iterationInTest;
  const url = env.urls[nth % env.urls.length];
  const name = `${run}-${nth}`;
  const listen = (r) => {
    hear(r);
    if (isRateLimited(r)) counters.slowed.add(1);
  };
  const request = () => placeOrder(url, name, unit(skus[nth % skus.length]), once(name));
  let r;
  if (nth % 2 === 0) {
    r = request();
    listen(r);
  } else {
    r = ask(request, listen);
  }
  if (r.status === 201) {
    counters.sold.add(1);
    unmatched.add(1);
  } else if (r.status === 409) {
    counters.refused.add(1);
  } else if (nth % 2 === 0 && busy(r) && kindOf(r) !== '/docs/problems/outcome-unknown') {
    counters.gave_up.add(1);
    pause();
  } else {
    counters.failed.add(1);
    complain('POST', r);
  }
}

// end pays and cancels, at a gentle pace, while the others do what they do.
export function end({ run, orders }) {
  const nth = exec.scenario.iterationInTest;
  const url = env.urls[nth % env.urls.length];
  const listen = (r) => counters.end_limited.add(r.status === 429 ? 1 : 0);
  const request = nth % 2 === 0 ? () => cancel(url, orders[nth]) : () => pay(url, orders[nth], `${run}-${nth}`);
  const r = ask(request, listen);
  if (r.status === 200) counters.ended.add(1);
  else complain('end', r);
  sleep(0.05);
}

const posts = (names, customer, sku) => names.map((name, i) => ['POST', `${env.urls[i % env.urls.length]}/api/v1/orders`,
  JSON.stringify({ customer_id: customer, items: unit(sku) }), params('POST /api/v1/orders', once(name))]);

// grab is the customer who does not stop asking. Whatever is not refused for the rate was
// begun, and that is bounded by the burst and the rate. The bound here is twice the burst: an
// instance that gets no answer from Redis for a moment counts for itself.
export function grab({ run, many: sku, rate }) {
  if (rate === 0) return;
  const began = Date.now();
  let allowed = 0;
  let refused = 0;
  let seconds = 0;
  // On a slow machine one at a time is not enough: until there is a refusal it gets more and more.
  for (let n = 0, many = handful; seconds < greed || (refused === 0 && seconds < patience); n++) {
    if (seconds >= greed) many = Math.min(2 * many, 10 * handful);
    const names = Array.from({ length: many }, (_, i) => `${run}-greedy-${n}-${i}`);
    for (const r of http.batch(posts(names, `${run}-greedy`, sku))) {
      hear(r);
      if (isRateLimited(r)) refused += 1;
      else allowed += 1;
      if (r.status === 201) cancel(env.urls[0], r.json().id);
    }
    seconds = (Date.now() - began) / 1000;
  }
  if (allowed > 2 * 2 * rate + rate * seconds + 1) {
    counters.rate_exceeded.add(1);
    console.error(`${allowed} orders begun in ${seconds} s at a rate of ${rate}`);
  }
  if (refused === 0) counters.rate_unproved.add(1);
}

// hoard is a customer who asks for more than there is for one, all at once.
export function hoard({ run, few }) {
  const customer = `${run}-hoarder-${exec.vu.idInTest}`;
  let left = Array.from({ length: wishes }, (_, i) => `${customer}-${i}`);
  let bought = 0;
  for (const until = Date.now() + 1000 * patience; left.length > 0 && Date.now() < until; pause()) {
    const answers = http.batch(posts(left, customer, few));
    answers.forEach(hear);
    bought += answers.filter((r) => r.status === 201).length;
    for (const r of answers.filter((a) => a.status === 409)) {
      const { type, exceeded } = r.json();
      if (type === '/docs/problems/purchase-limit' && exceeded.limit === limit && exceeded.had === limit && exceeded.sku === few) continue;
      counters.bought_wrong.add(1);
      complain('a refusal that is not the limit', r);
    }
    left = left.filter((_, i) => busy(answers[i]));
  }
  unmatched.add(bought);
  if (bought === limit && left.length === 0) counters.had_all.add(1);
  else console.error(`${customer} bought ${bought}, ${left.length} requests were not answered`);
}

export function teardown({ skus, open, few, many }) {
  for (const books of audits(env.urls, [...skus, open, few, many])) {
    const wanted = books.sku === open ? books.sold === opened / 2 && books.accepted === opened / 2 : books.accepted <= books.stocked;
    if (books.ok && wanted) counters.balanced.add(1);
    else counters.unbalanced.add(1);
    if (books.sku !== open && books.sku !== many) unmatched.add(-books.accepted);
  }
}

export function handleSummary(data) {
  const { count, value } = figures(data, 'limits');
  const rate = (data.setup_data || {}).rate;
  return conclude(data, env, {
    name: 'limits',
    row: {
      attempts: env.attempts,
      sold: count('sold'),
      refused: count('refused'),
      gave_up: count('gave_up'),
      '429s_concurrency_limit': count('concurrency_limited'),
      '429s_rate': rate ? count('rate_limited') : null,
      mute: count('mute'),
      failed: count('failed'),
      ended: count('ended'),
      at_limit: count('had_all'),
      unbalanced: count('unbalanced'),
      '429_p50_ms': value('refusal', 'med'),
      '429_p99_ms': value('refusal', 'p(99)'),
    },
    proved: `${count('concurrency_limited')} refusals had no effect and said when to come back, ${opened} orders were paid and cancelled meanwhile`
      + `, and ${tempted} customers got their ${limit} units each${rate ? '; one who asked too often was held to the rate' : ''}`,
    note: 'gave up = buyers who took a refusal for an answer; mute = refusals without Retry-After, RateLimit or\n'
      + 'RateLimit-Policy; ended = orders paid or cancelled; at limit = customers with exactly the purchase limit',
  });
}
