// The outcome of a run as one object: what the reports show and k6-summary.json holds.

export const inconclusive = 'INCONCLUSIVE: a sale without protection did not oversell, or none ran: nothing shows that this load could have';

// value returns one figure of a metric, or null if the metric has no samples.
function value(metrics, name, figure) {
  const m = metrics[name];
  return m === undefined || m.values[figure] === undefined ? null : m.values[figure];
}

function crossed(metrics, concerns) {
  return Object.entries(metrics).filter(([name]) => concerns(name)).flatMap(([name, m]) =>
    Object.entries(m.thresholds || {}).filter(([, t]) => !t.ok).map(([rule]) => `${name} ${rule}`));
}

// summarizeVariant names its fields as `shop demo --json` does.
function summarizeVariant(metrics, { strategy, expected }, { stock, attempts }) {
  const of = (name, figure) => value(metrics, `${name}{variant:${strategy}}`, figure);
  const count = (name) => of(name, 'count') || 0;
  const audited = count('audit_ran') === 1;
  const book = (name) => (audited ? of(name, 'value') : null); // a gauge that nobody set reads 0
  const accepted = count('orders_accepted');
  const rejected = count('orders_refused');
  const seconds = ((of('elapsed_ms', 'max') || 0) - (of('elapsed_ms', 'min') || 0)) / 1000;
  const variant = {
    strategy,
    expected,
    stock,
    attempts,
    accepted,
    rejected,
    busy: count('orders_busy'),
    errors: count('orders_attempted') - accepted - rejected,
    recorded: book('units_recorded'),
    oversold: book('units_oversold'),
    undersold: book('units_unsold'),
    lost_updates: book('updates_lost'),
    orders_per_second: seconds > 0 ? (accepted + rejected) / seconds : 0,
    p50_ms: of('http_req_duration', 'med'),
    p99_ms: of('http_req_duration', 'p(99)'),
    instances_hit: of('instances_hit', 'max') || 0,
    audit_ok: audited && book('audit_broken') === 0,
    crossed: crossed(metrics, (name) => name.endsWith(`{variant:${strategy}}`)),
  };
  return { ...variant, verdict: judge(variant) };
}

function judge(variant) {
  if (variant.oversold > 0) return 'oversold';
  if (variant.undersold > 0) return 'undersold';
  return variant.audit_ok && variant.crossed.length === 0 ? 'exact' : 'broken';
}

export function summarize({ metrics, setup_data: sale }, env) {
  const variants = env.variants.map((variant) => summarizeVariant(metrics, variant, env));
  const failures = crossed(metrics, () => true);
  const baselines = variants.filter((variant) => variant.expected === 'oversold');
  const proved = baselines.length > 0 && baselines.every((variant) => variant.oversold > 0);
  const instances = ((sale && sale.instances) || []).map((name, i) => ({
    name, orders: value(metrics, `orders_answered{place:${i}}`, 'count') || 0,
  }));
  let verdict = 'proved';
  let line = `PROVED: ${baselines.map((a) => a.strategy).join(', ')} oversold, every other strategy sold exactly ${env.exactly}`;
  if (sale === undefined) {
    verdict = 'failed';
    line = 'FAILED: the sale did not begin, see the error above or below';
  } else if (failures.length > 0) {
    verdict = 'failed';
    line = `FAILED: ${failures.join(', ')}`;
  } else if (!proved) {
    verdict = 'inconclusive';
    line = inconclusive;
  }
  return { verdict, line, urls: env.urls, buyers: env.buyers, instances, variants };
}
