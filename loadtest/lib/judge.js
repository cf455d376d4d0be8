// The metrics of a sale, and the thresholds that judge it.
//
// Buyers share no memory, so everything is a metric with the tag `variant`, and a threshold per
// variant. A threshold on a metric without samples holds: "oversold_units == 0" says nothing if
// nobody has looked. That is why attempts and audits are counted as well.
import { Counter, Gauge, Trend } from 'k6/metrics';

export const metrics = {
  attempted: new Counter('orders_attempted'),
  accepted: new Counter('orders_accepted'), // 201, as the buyers saw it
  refused: new Counter('orders_refused'), // 409
  busy: new Counter('orders_busy'), // 429 and 503, which had no effect and are asked again
  failed: new Counter('orders_failed'), // no answer, or any other
  answered: new Counter('orders_answered'), // by instance
  seen: new Trend('instances_hit'), // by one buyer: its greatest value is a lower bound
  elapsed: new Gauge('elapsed_ms', true), // at both ends of each attempt

  audited: new Counter('audit_ran'),
  recorded: new Gauge('units_recorded'), // in pending and confirmed orders
  oversold: new Gauge('units_oversold'),
  unsold: new Gauge('units_unsold'),
  lost: new Gauge('updates_lost'),
  broken: new Gauge('audit_broken'), // 1 if the audit found any fault
  // Raised by each 201 and lowered by what the audit finds in the database: only a metric
  // can carry the buyers' count to where the audit is.
  unmatched: new Counter('orders_unmatched'),
};

// Instances that get a line of their own in the report.
export const places = 16;

function judge(variant, { attempts, exactly, minInstances }) {
  const rules = {
    orders_attempted: `count==${attempts}`,
    orders_failed: 'count==0',
    audit_ran: 'count==1',
    orders_unmatched: 'count==0',
    instances_hit: `max>=${minInstances}`,
    // Always true: a series for one variant exists only if a threshold names it.
    orders_accepted: 'count>=0',
    orders_refused: 'count>=0',
    orders_busy: 'count>=0',
    elapsed_ms: 'value>=0',
    http_req_duration: 'max>=0',
    units_recorded: 'value>=0',
    units_oversold: 'value>=0',
    units_unsold: 'value>=0',
    updates_lost: 'value>=0',
    audit_broken: 'value>=0',
  };
  const exact = {
    orders_accepted: `count==${exactly}`,
    units_recorded: `value==${exactly}`,
    units_oversold: 'value==0',
    units_unsold: 'value==0',
    updates_lost: 'value==0',
    audit_broken: 'value==0',
  };
  return Object.entries({ ...rules, ...(variant.expected === 'exact' ? exact : {}) })
    .map(([metric, rule]) => [`${metric}{variant:${variant.strategy}}`, [rule]]);
}

export function thresholds(variants, sale) {
  const byInstance = Array.from({ length: places }, (_, i) => [`orders_answered{place:${i}}`, ['count>=0']]);
  return Object.fromEntries([
    ['http_req_failed', ['rate==0']],
    ...byInstance,
    ...variants.flatMap((variant) => judge(variant, sale)),
  ]);
}
