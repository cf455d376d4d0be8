// The outcome of a script that has one line to say: an object, a table of one row, and files.
import { Counter } from 'k6/metrics';

// counters returns counters with the names that begin with prefix. A threshold on a metric
// without samples holds, so setup must call start.
export function newCounters(prefix, names) {
  const all = Object.fromEntries(names.map((name) => [name, new Counter(`${prefix}_${name}`)]));
  return { ...all, start: () => Object.values(all).forEach((c) => c.add(0)) };
}

// figures returns functions that read the metrics of a run: count is 0 and value is null for
// one that has no samples.
export function figures({ metrics }, prefix) {
  const of = (name, figure) => (metrics[`${prefix}_${name}`] || { values: {} }).values[figure];
  return {
    count: (name) => of(name, 'count') || 0,
    value: (name, figure) => (of(name, figure) === undefined ? null : of(name, figure)),
  };
}

function crossed(metrics) {
  return Object.entries(metrics).flatMap(([name, m]) =>
    Object.entries(m.thresholds || {}).filter(([, t]) => !t.ok).map(([rule]) => `${name} ${rule}`));
}

const show = (v) => {
  if (v === null) return '-';
  return typeof v === 'number' && !Number.isInteger(v) ? v.toFixed(v < 1 ? 3 : 1) : String(v);
};

function table(name, verdict, row) {
  const cells = Object.entries(row).map(([title, v]) => [title.replace(/_/g, ' '), show(v)]);
  const widths = cells.map(([title, cell]) => Math.max(title.length, cell.length));
  const first = Math.max(8, name.length);
  const lines = [[name, 0, 'verdict'], ['', 1, verdict]].map(([head, i, last]) =>
    [head.padEnd(first), ...cells.map((c, n) => c[i].padStart(widths[n])), last].join('  '));
  return lines.join('\n');
}

// conclude returns what handleSummary has to write. row has the figures, proved what they
// show if no threshold was crossed, and note explains the columns.
export function conclude(data, env, { name, row, proved, note }) {
  const begun = data.setup_data !== undefined;
  const failures = crossed(data.metrics);
  const verdict = begun && failures.length === 0 ? 'proved' : 'failed';
  let line = `PROVED: ${proved}`;
  if (!begun) line = 'FAILED: it did not begin, see the error above or below';
  else if (failures.length > 0) line = `FAILED: ${failures.join(', ')}`;
  const files = { stdout: `\n${table(name, verdict, row)}\n\n${note}\n${line}\n` };
  if (env.out !== '') {
    const summary = { verdict, line, begun, crossed: failures, ...row, metrics: data.metrics };
    files[`${env.out}/k6-${name}.json`] = `${JSON.stringify(summary, null, 2)}\n`;
  }
  return files;
}
