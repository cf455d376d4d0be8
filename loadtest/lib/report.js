// The outcome as a table for a terminal and as one HTML file that needs nothing else.

const dash = '-';
const fixed = (digits) => (n) => (n === null ? dash : n.toFixed(digits));
const plain = (n) => (n === null ? dash : String(n));

const columns = [
  ['strategy', (a) => a.strategy],
  ['expected', (a) => a.expected],
  ['stock', (a) => plain(a.stock)],
  ['attempts', (a) => plain(a.attempts)],
  ['accepted', (a) => plain(a.accepted)],
  ['in database', (a) => plain(a.recorded)],
  ['rejected', (a) => plain(a.rejected)],
  ['busy', (a) => plain(a.busy)],
  ['errors', (a) => plain(a.errors)],
  ['oversold', (a) => plain(a.oversold)],
  ['undersold', (a) => plain(a.undersold)],
  ['lost updates', (a) => plain(a.lost_updates)],
  ['orders/s', (a) => fixed(0)(a.orders_per_second)],
  ['p50 ms', (a) => fixed(1)(a.p50_ms)],
  ['p99 ms', (a) => fixed(1)(a.p99_ms)],
  ['instances', (a) => plain(a.instances_hit)],
  ['verdict', (a) => a.verdict],
];

const isText = (i) => i < 2 || i === columns.length - 1;

function answered({ instances }) {
  return instances.map((i) => `${i.name} ${i.orders}`).join(', ') || 'nobody';
}

export function text(summary) {
  const rows = [columns.map(([title]) => title), ...summary.variants.map((a) => columns.map(([, cell]) => cell(a)))];
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  const lines = rows.map((row) => row.map((c, i) => (isText(i) ? c.padEnd(widths[i]) : c.padStart(widths[i]))).join('  ').trimEnd());
  return `\n${lines.join('\n')}\n\nanswered by: ${answered(summary)}\n${summary.line}\n`;
}

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escape = (s) => String(s).replace(/[&<>"]/g, (c) => escapes[c]);

const style = `
  :root { color-scheme: light dark; --sold: #2f855a; --over: #c53030; --line: #8884; }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
  .proved { color: var(--sold) } .failed { color: var(--over) } .inconclusive { color: #b7791f }
  .scroll { overflow-x: auto }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums }
  th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
  .text { text-align: left }
  .bar { display: flex; height: 1.3rem; margin: .2rem 0 .8rem }
  .sold { background: var(--sold) } .over { background: var(--over) }`;

function table({ variants }) {
  const row = (tag, cells) => `<tr>${cells.map((c, i) => `<${tag}${isText(i) ? ' class="text"' : ''}>${escape(c)}</${tag}>`).join('')}</tr>`;
  return `<div class="scroll"><table>
${row('th', columns.map(([title]) => title))}
${variants.map((a) => row('td', columns.map(([, cell]) => cell(a)))).join('\n')}
</table></div>`;
}

// bars draws the units that each variant promised, those beyond the stock in red.
function bars({ variants }) {
  const widest = Math.max(1, ...variants.map((a) => Math.max(a.recorded || 0, a.stock)));
  const part = (name, units) => `<div class="${name}" style="width:${(100 * units) / widest}%"></div>`;
  return variants.map((a) => {
    const over = a.oversold || 0;
    const label = `${a.strategy}: ${plain(a.recorded)} units promised of ${a.stock}${over > 0 ? `, ${over} of them do not exist` : ''}`;
    return `<div>${escape(label)}</div><div class="bar">${part('sold', (a.recorded || 0) - over)}${part('over', over)}</div>`;
  }).join('\n');
}

export function html(summary) {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Flash sale: ${escape(summary.verdict)}</title>
<style>${style}
</style>
<h1>Flash sale: <span class="${summary.verdict}">${escape(summary.verdict)}</span></h1>
<p>${escape(summary.line)}</p>
<p>${summary.buyers} buyers, one sale after another. Orders answered by: ${escape(answered(summary))}.</p>
<h2>Promised units</h2>
${bars(summary)}
<h2>Figures</h2>
${table(summary)}
</html>
`;
}
