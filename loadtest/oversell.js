// One flash sale per strategy, one after another, on any number of instances: the load test
// that shows the oversell, and shows which strategies prevent it.
//
// k6 exits with 0 if each unsafe baseline oversold and every other variant sold exactly its stock, with
// 99 if a threshold was crossed, so a variant was not exact or the run itself was at fault, and
// with 110 if an unsafe baseline did not oversell or none ran: then the run proves nothing.
import exec from 'k6/execution';
import * as env from './lib/env.js';
import { ask, audit, busy, createSKU, instance, once, placeOrder, ready, unit } from './lib/api.js';
import { metrics, places, thresholds } from './lib/judge.js';
import { inconclusive, summarize } from './lib/summary.js';
import { html, text } from './lib/report.js';

// A buyer who asks once or twice cannot see that several instances answer.
if (env.attempts < 4 * env.buyers) throw new Error(`ATTEMPTS=${env.attempts}: want at least 4 for each of the ${env.buyers} BUYERS`);

export const options = {
  scenarios: {
    sale: {
      executor: 'shared-iterations', // an exact number of attempts, however long they take
      exec: 'buy',
      vus: env.buyers,
      iterations: env.attempts * env.variants.length,
      maxDuration: env.maxDuration,
    },
  },
  thresholds: thresholds(env.variants, env),
  summaryTrendStats: ['min', 'med', 'p(95)', 'p(99)', 'max'],
};

// discover asks often enough that a balancer has shown each instance behind it.
function discover() {
  const found = new Set();
  for (let i = 0; i < Math.max(2 * places, env.urls.length); i++) {
    const r = ready(env.urls[i % env.urls.length]);
    if (r.status !== 200) throw new Error(`GET ${r.url}: not ready: ${r.status || r.error}`);
    found.add(instance(r));
  }
  return [...found].sort();
}

export function setup() {
  const instances = discover();
  const run = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
  const skus = {};
  for (const { strategy } of env.variants) {
    skus[strategy] = `k6-${run}-${strategy}`;
    const r = createSKU(env.urls[0], skus[strategy], env.stock, strategy);
    if (r.status < 200 || r.status > 299) throw new Error(`PUT ${r.url}: ${r.status || r.error} ${r.body || ''}`);
  }
  return { run, instances, skus, began: Date.now() };
}

// Of this buyer: the module is loaded once for each.
const seen = new Set();
let complained = false;

export function buy({ run, instances, skus, began }) {
  const nth = exec.scenario.iterationInTest;
  const variant = env.variants[Math.floor(nth / env.attempts)].strategy;
  const url = env.urls[(exec.vu.idInTest + exec.vu.iterationInScenario) % env.urls.length];
  exec.vu.metrics.tags.variant = variant; // on every metric of this attempt, those of k6 too
  metrics.elapsed.add(Date.now() - began);
  const customer = `${run}-${nth}`;
  const r = ask(
    () => placeOrder(url, customer, unit(skus[variant]), once(customer)),
    (answer) => metrics.busy.add(busy(answer) ? 1 : 0),
  );
  metrics.attempted.add(1);
  metrics.elapsed.add(Date.now() - began);
  if (r.status === 201) {
    metrics.accepted.add(1);
    metrics.unmatched.add(1);
  } else if (r.status === 409) {
    metrics.refused.add(1);
  } else {
    metrics.failed.add(1);
    if (!complained) console.error(`${variant}: POST ${r.url}: ${r.status || r.error} ${r.body || ''}`);
    complained = true;
    return;
  }
  const who = instance(r);
  seen.add(`${variant} ${who}`);
  metrics.seen.add([...seen].filter((s) => s.startsWith(`${variant} `)).length);
  metrics.answered.add(1, { place: String(instances.indexOf(who)) });
}

export function teardown({ skus }) {
  let exact = true;
  let proof = env.variants.some((variant) => variant.expected === 'oversold');
  for (const { strategy, expected } of env.variants) {
    const books = audit(env.urls[0], skus[strategy]);
    if (books === null) { // audit_ran stays at 0, and its threshold speaks
      exact = false;
      continue;
    }
    const tags = { variant: strategy };
    const unsold = Math.max(0, env.exactly - books.accepted);
    metrics.audited.add(1, tags);
    metrics.recorded.add(books.accepted, tags);
    metrics.unmatched.add(-books.accepted, tags);
    metrics.oversold.add(books.oversold, tags);
    metrics.unsold.add(unsold, tags);
    metrics.lost.add(books.lost_updates, tags);
    metrics.broken.add(books.ok ? 0 : 1, tags);
    if (expected === 'oversold') proof = proof && books.oversold > 0;
    else exact = exact && books.ok && books.accepted === env.exactly;
  }
  // Marking the run hides crossed thresholds from the exit code, so it is only done where
  // the books give none a reason to be crossed.
  if (exact && !proof) exec.test.fail(inconclusive);
}

export function handleSummary(data) {
  const summary = summarize(data, env);
  const files = { stdout: text(summary) };
  if (env.out !== '') {
    files[`${env.out}/k6-summary.json`] = `${JSON.stringify({ ...summary, metrics: data.metrics }, null, 2)}\n`;
    files[`${env.out}/loadtest.html`] = html(summary);
  }
  return files;
}
