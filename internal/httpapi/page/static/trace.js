// The trace of an order: a waterfall of spans for each request and each batch of timers that changed it.

import {html, useEffect, useState} from './vendor/htm-preact.js';
import {get, roomToken} from './api.js';
import {t} from './text.js';

const again = 1000; // milliseconds; a lease and a batch of timers end after the event about the order

export function Trace({order}) {
  const [{trace, error}, set] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    const read = () => get(`/${roomToken ? 'lab' : 'api/v1'}/orders/${order.id}/trace`, stop.signal)
      .then((trace) => set({trace}), (err) => { if (!stop.signal.aborted) set({error: err.message}); });
    let later;
    read().then(() => { later = setTimeout(read, again); });
    return () => { stop.abort(); clearTimeout(later); };
  }, [order.id, order.changed_at]);
  return html`<h3>${t('trace')}</h3>${error ? html`<p class="warn">${error}</p>` : trace && (trace.spans.length === 0 ? html`<p class="muted">${missing(order, trace.since)}</p>`
    : waterfalls(trace.spans, order.changes).map((w) => html`<${Waterfall} key=${w.id} ...${w} />`))}`;
}

// missing says why there are no spans. The id of an order begins with the time at which it was chosen.
function missing({id}, since) {
  if (!since) return t(roomToken ? 'notInRoom' : 'noTraces'); // in a room, no instance may have responded
  const placed = parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  return placed < Date.parse(since) ? t('tooOld', new Date(since).toTimeString().slice(0, 8)) : t(roomToken ? 'notInRoom' : 'notSampled');
}

// micros returns the microseconds since 1970 of a time with a fraction.
const micros = (at) => Date.parse(at.slice(0, 19) + 'Z') * 1000 + Math.round(Number(`0.${at.slice(20, -1) || 0}`) * 1e6);

const kinds = {'order.': 'order', 'lock.': 'lease', 'stock.': 'transaction', 'timers': 'timer'};

const kindOf = ({name, attributes}) => attributes['http.route'] ? 'http' : attributes['db.system.name'] === 'redis' ? 'redis' : attributes['db.system.name'] ? 'statement'
  : Object.entries(kinds).find(([prefix]) => name.startsWith(prefix))?.[1] ?? 'order';

// waterfalls returns the rows of each span that is part of no other, from the outside to the inside, and the events about the order among them.
export function waterfalls(spans, changes = []) {
  const all = spans.filter((s) => !s.within).map((root) => ({id: root.id, instance: root.instance, from: root.start_us, rows: rows(root, 0, spans)})).sort((a, b) => a.from - b.from);
  for (const {status, at} of changes) {
    const from = micros(at);
    all.findLast((w) => w.from <= from)?.rows.push({name: t('eventOf', status), kind: 'event', depth: 0, from, until: from});
  }
  // A lease may have been held before the request, and may be held after it.
  return all.map((w) => ({...w, until: Math.max(w.from + 1, ...w.rows.filter((r) => r.kind !== 'lease').map((r) => r.until))}));
}

function rows(span, depth, spans) {
  const until = span.start_us + span.duration_us, parts = spans.filter((s) => s.within === span.id).map((s) => rows(s, depth + 1, spans));
  const wait = Number(span.attributes['order.batch.wait']) * 1e6, begins = parts.flat().find((r) => r.kind === 'transaction')?.from;
  if (wait >= 0 && begins) parts.push([{name: t('queue'), kind: 'queue', depth: depth + 1, from: begins - wait, until: begins}]);
  parts.sort(([a], [b]) => a.from - b.from);
  return [{name: span.name, kind: kindOf(span), failed: span.failed, why: span.attributes['error.type'], depth, from: span.start_us, until}, ...parts.flat()];
}

const ms = (us) => (us / 1000).toFixed(us < 100_000 ? 2 : 0);

function Waterfall({instance, from, until, rows}) {
  const share = (at) => 100 * Math.min(1, Math.max(0, (at - from) / (until - from)));
  return html`<table class="trace"><caption><time>${new Date(from / 1000).toTimeString().slice(0, 8)}</time> ${instance}</caption>
    <thead><tr><th>${t('step')}</th><th>${t('begins')}</th><th>${t('lasts')}</th><td></td></tr></thead>
    <tbody>${rows.map((r, i) => html`<tr key=${i}><th scope="row" class=${r.failed ? 'bad' : ''}>${'\u2003'.repeat(r.depth)}${r.name}${r.failed ? ` ${t('failed')}${r.why ? `: ${r.why}` : ''}` : ''}</th>
      <td class="number">${ms(r.from - from)}</td><td class="number">${r.kind === 'event' ? '' : ms(r.until - r.from)}</td>
      <td><svg width="100%" height="12" aria-hidden="true"><rect class=${r.kind} x=${`${share(r.from) * .98}%`} width=${`${Math.max(.98 * (share(r.until) - share(r.from)), 1)}%`} height="12" /></svg></td></tr>`)}</tbody></table>`;
}
