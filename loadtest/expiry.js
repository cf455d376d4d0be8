// Orders that nobody pays: each takes the only unit of a SKU of its own, and every instance
// gives them a few seconds. When an order has expired its unit must be back, once and not
// before, and is sold to somebody else who pays.
//
// What is early and what is late is told by times that the service has answered with, all of
// the database's clock. The clock here only says when to look.
//
// k6 exits with 0 if every order expired at its time and the books agree, and with 99 if not.
import exec from 'k6/execution';
import { sleep } from 'k6';
import { Trend } from 'k6/metrics';
import * as env from './lib/env.js';
import { ask, audits, createSKUs, gone, level, newRun, once, order, pay, placeOrder, placeOrders, unit } from './lib/api.js';
import { conclude, figures, newCounters } from './lib/outcome.js';

// Looking is load, too. There are a few looks in the second before an order expires, one when
// it should have, and each pause after that is longer.
const lookAhead = 1; // seconds
const lookEvery = 0.25; // seconds, ahead
const shortest = 0.02; // seconds, afterwards
const patience = 120; // seconds after which an order counts as lost: one that a dead instance had in hand is its for 30
const longest = 60; // seconds that an order may be given

const counters = newCounters('expiry', ['expired', 'early', 'lost', 'paid_late', 'resold', 'balanced', 'unbalanced', 'killed']);
const lateness = new Trend('expiry_lateness', true);

export const options = {
  batch: env.buyers,
  batchPerHost: env.buyers,
  scenarios: {
    wait: { executor: 'per-vu-iterations', exec: 'wait', vus: env.unpaid, iterations: 1, maxDuration: `${longest + 2 * patience}s` },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    expiry_expired: [`count==${env.unpaid}`],
    expiry_resold: [`count==${env.unpaid}`],
    expiry_balanced: [`count==${env.unpaid}`],
    expiry_early: ['count==0'],
    expiry_lost: ['count==0'],
    expiry_paid_late: ['count==0'],
    expiry_unbalanced: ['count==0'],
    expiry_killed: [`count==${env.dying.length}`],
  },
  summaryTrendStats: ['min', 'med', 'p(99)', 'max'],
};

export function setup() {
  counters.start();
  const run = `${newRun()}-expiry`;
  const skus = Array.from({ length: env.unpaid }, (_, i) => `${run}-${i}`);
  createSKUs(env.urls, skus, 1, 'conditional');
  const orders = placeOrders(env.urls, skus, run).map((o) => ({
    id: o.id, sku: o.items[0].sku, expires: Date.parse(o.expires_at), seconds: (Date.parse(o.expires_at) - Date.parse(o.created_at)) / 1000,
  }));
  const most = Math.max(...orders.map((o) => o.seconds));
  if (most > longest) throw new Error(`orders last ${most} s: start the instances with --order-ttl of a few seconds`);
  const last = Math.max(...orders.map((o) => o.expires));
  for (const o of orders) o.ahead = (last - o.expires) / 1000;
  console.info(`${orders.length} orders placed`); // run.sh waits for this, and kills an instance
  return { run, orders, placed: Date.now() };
}

export function wait({ run, orders, placed }) {
  const nth = exec.vu.idInTest - 1;
  const { id, sku, expires, seconds, ahead } = orders[nth % orders.length];
  const url = (turn) => env.survivors[(nth + turn) % env.survivors.length];
  // The last order is as old as placed says, and this one expires so much ahead of it.
  const left = () => (placed - Date.now()) / 1000 + seconds - ahead;
  sleep(Math.max(0, left() - lookAhead));
  const end = Date.now() + (seconds + patience) * 1000;
  let pause = shortest;
  while (ask(() => level(url(0), sku)).json().available < 1) {
    if (Date.now() > end) {
      counters.lost.add(1);
      return;
    }
    if (left() > shortest) {
      sleep(Math.min(lookEvery, left()));
    } else {
      sleep(pause);
      pause = Math.min(1, 1.5 * pause);
    }
  }
  const status = ask(() => order(url(1), id)).json().status;
  if (status === 'EXPIRED') counters.expired.add(1);
  else counters.early.add(1);
  if (ask(() => pay(url(0), id, `late-${nth}`)).status !== 409) counters.paid_late.add(1);

  const customer = `${run}-next-${nth}`;
  const next = ask(() => placeOrder(url(1), customer, unit(sku), once(customer)));
  if (next.status !== 201) return;
  const late = Date.parse(next.json().created_at) - expires;
  lateness.add(late);
  if (late < 0) counters.early.add(1);
  const paid = ask(() => pay(url(0), next.json().id, `payment-${nth}`));
  // One who pays too late is a customer like the first: the unit was sold again all the same.
  if (paid.status === 200 || paid.status === 409) counters.resold.add(1);
}

export function teardown({ orders }) {
  counters.killed.add(env.dying.filter(gone).length); // nobody else says whether it was
  for (const books of audits(env.survivors, orders.map((o) => o.sku))) {
    if (books.ok && books.stocked === 1 && books.accepted <= 1) counters.balanced.add(1);
    else counters.unbalanced.add(1);
  }
}

export function handleSummary(data) {
  const { count, value } = figures(data, 'expiry');
  const killed = count('killed');
  const though = killed > 0 ? `, though ${killed} of the instances was killed -9` : '';
  return conclude(data, env, {
    name: 'expiry',
    row: {
      killed,
      orders: env.unpaid,
      expired: count('expired'),
      early: count('early'),
      lost: count('lost'),
      resold: count('resold'),
      unbalanced: count('unbalanced'),
      p50_ms: value('lateness', 'med'),
      p99_ms: value('lateness', 'p(99)'),
    },
    proved: `${env.unpaid} unpaid orders gave their units back at their time${though}, and all were sold again`,
    note: 'p50, p99 = lateness: from the moment an order expires until its unit is sold again, by the\n'
      + "database's clock, which includes the customer's pauses between two looks",
  });
}
