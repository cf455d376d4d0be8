// The outcome of the unpaid orders: one object, with the field names of `shop demo --json`
// where they mean the same, and a table of one row.

const count = (metrics, name) => (metrics[name] ? metrics[name].values.count : 0);

export function summarize({ metrics, setup_data: begun }, env) {
  const of = (name) => count(metrics, `expiry_${name}`);
  const late = metrics.expiry_lateness ? metrics.expiry_lateness.values : {};
  const crossed = Object.entries(metrics).flatMap(([name, m]) =>
    Object.entries(m.thresholds || {}).filter(([, t]) => !t.ok).map(([rule]) => `${name} ${rule}`));
  return {
    verdict: begun !== undefined && crossed.length === 0 ? 'proved' : 'failed',
    begun: begun !== undefined,
    crossed,
    killed: env.urls.length - env.survivors.length,
    orders: env.unpaid,
    expired: of('expired'),
    early: of('early'),
    lost: of('lost'),
    resold: of('resold'),
    unbalanced: of('unbalanced'),
    p50_ms: late.med === undefined ? null : late.med,
    p99_ms: late['p(99)'] === undefined ? null : late['p(99)'],
  };
}

export function line(summary) {
  if (!summary.begun) return 'FAILED: no orders were placed, see the error above or below';
  if (summary.crossed.length > 0) return `FAILED: ${summary.crossed.join(', ')}`;
  const though = summary.killed > 0 ? `, though ${summary.killed} of the instances was killed -9` : '';
  return `PROVED: ${summary.orders} unpaid orders gave their units back at their time${though}, and all were sold again`;
}

export function text(summary) {
  const ms = (n) => (n === null ? '-' : n.toFixed(1));
  const columns = ['orders', 'expired', 'early', 'lost', 'resold', 'unbalanced'];
  const cells = [...columns.map((c) => [c, String(summary[c])]), ['p50 ms', ms(summary.p50_ms)], ['p99 ms', ms(summary.p99_ms)]];
  const widths = cells.map(([title, cell]) => Math.max(title.length, cell.length));
  const row = (name, i, last) => [name.padEnd(8), ...cells.map((c, n) => c[i].padStart(widths[n])), last].join('  ');
  return `\n${row('unpaid', 0, 'verdict')}\n${row('', 1, summary.verdict)}\n\n`
    + 'p50, p99 = lateness: from the moment an order expires until its unit is sold again, by the\n'
    + `database's clock, which includes the customer's pauses between two looks\n${line(summary)}\n`;
}
