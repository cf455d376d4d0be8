// The lock lane: who holds the lease of a SKU. Time runs to the right; each instance has a row.

import {html, useEffect, useRef, useState} from './vendor/htm-preact.js';
import {doubleHolds, endOf, expired} from './state.js';
import {t} from './text.js';

const row = 44, left = 76, windows = [200, 1000, 10_000]; // milliseconds
const wide = matchMedia('(min-width: 75rem)').matches; // there is room for the table

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Lane shows the leases of a SKU up to the moment that clock returns, and how many tickets of its sale were sold twice.
export function Lane({state, sku, paused, clock = () => Date.now() - 500, names = [...state.members.keys()], over}) {
  const canvas = useRef();
  const view = useRef();
  const [span, zoom] = useState(windows.at(-1));
  const now = paused && view.current ? view.current.now : clock();
  view.current = {state, sku, span, clock, names, now, ago: paused && view.current ? view.current.ago : isPast(now), bars: []};
  useEffect(() => {
    let frame;
    const paint = () => {
      if (!paused) Object.assign(view.current, {now: view.current.clock(), ago: isPast(view.current.clock())});
      draw(canvas.current, view.current);
      if (!paused) frame = requestAnimationFrame(paint);
    };
    paint();
    return () => cancelAnimationFrame(frame);
  }, [paused, span]);
  useEffect(() => { if (paused) draw(canvas.current, view.current); }); // in another language, or in other colors
  useEffect(() => {
    const resized = new ResizeObserver(() => { if (paused) draw(canvas.current, view.current); });
    resized.observe(canvas.current);
    return () => resized.disconnect();
  }, [paused]);
  const leases = [...state.leases.values()].filter((l) => l.sku === sku && l.from <= now + 500), ordinals = state.ordinals(sku);
  const refused = state.refused.filter((r) => r.sku === sku && r.at <= now + 500);
  // A lease that has ended looks open until the event of its end arrives, so the latest second does not count.
  const pairs = doubleHolds(leases, now - 1000), double = new Set(pairs.map(([, later]) => later)).size;
  const early = new Set(pairs.map(([earlier]) => earlier)), late = [...early].every((l) => expired(l, now));
  const waiting = [...state.waiting.values()].filter((w) => w.sku === sku).reduce((n, w) => n + w.orders, 0);
  return html`<section class="lock" id="lane" aria-labelledby="lane-title">
    <h2 id="lane-title">${t('lane')} ${sku && html`<code>${sku}</code>`}</h2>
    <p role="group" aria-label=${t('window')}>${windows.map((ms) => html`<button key=${ms} aria-pressed=${ms === span} onClick=${() => zoom(ms)}>${ms / 1000} s</button> `)}</p>
    <canvas ref=${canvas} onMouseMove=${(e) => { canvas.current.title = tokenAt(view.current, e.offsetX, e.offsetY); }} role="img" aria-label=${t('laneLabel', leases.length, double, refused.length)}></canvas>
    <p class="counts"><span class=${double ? 'bad' : ''}>${double > 0 && html`<b id="late-holders">${early.size}</b> ${t(late ? 'lateHolders' : 'holders', early.size)} `}<b id="double-holds">${double}</b> ${t(double > 0 ? 'overlapped' : 'noOverlap', double)}</span>
      <span class=${refused.length ? 'warn' : ''}><b id="refused-writes">${refused.length}</b> ${t('refusedWrites', refused.length)}</span>
      ${over !== undefined && html`<span class=${over ? 'bad' : ''}><b id="sold-twice">${over}</b> ${t('ticketsTwice')}</span>`}
      ${!view.current.ago && html`<span><b id="waiting-orders">${waiting}</b> ${t('waitingOrders', waiting)}</span>`}</p>
    ${state.lacks(sku, now - span) && html`<p id="lacks-leases" class="muted note">${t('lacksLeases')}</p>`}
    <details open=${wide}><summary>${t('latestLeases')}</summary>
      <table><thead><tr><th>${t('instance')}</th><th>${t('token')}</th><th>${t('heldFor')}</th></tr></thead>
      <tbody>${leases.toSorted((a, b) => b.fence - a.fence).slice(0, 6).map((l) => html`<tr key=${l.holder + l.fence}><td>${l.holder}</td><td class="number" title=${l.fence}>#${ordinals.get(l.fence)}</td>
        <td class="number">${l.until ? `${(l.until - l.from).toFixed(0)} ms` : expired(l, now) ? '' : t('inUse')}
          ${expired(l, now) && html`<span class="warn"> ${t('expiredAfter', (l.expires - l.from).toFixed(0))}</span>`}</td></tr>`)}</tbody></table>
    </details>
  </section>`;
}

// isPast reports whether a moment is not the present any more.
const isPast = (at) => Date.now() - at > 2000;

// tokenAt returns the fencing token of the bar at a point of the canvas.
const tokenAt = ({bars}, x, y) => bars.findLast((b) => x >= b.from && x <= b.from + b.wide && y >= b.top && y < b.top + row)?.text ?? '';

function draw(canvas, view) {
  const {state, sku, span, now, ago, names} = view, ordinals = state.ordinals(sku), label = (fence) => `#${ordinals.get(fence)}`;
  view.bars = [];
  const leases = [...state.leases.values()].filter((l) => l.sku === sku), late = leases.filter((l) => expired(l, now));
  const rows = [...new Set([...names.toSorted(), ...leases.map((l) => l.holder).sort()])];
  const width = canvas.clientWidth, height = Math.max(1, rows.length) * row + 22, scale = devicePixelRatio;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
  }
  const x = (at) => left + (width - left - 8) * (1 - (now - at) / span);
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  rows.forEach((name, i) => {
    pen.fillStyle = color('--line');
    pen.fillRect(left, i * row + row - 1, width - left, 1);
    const waits = state.waiting.get(`${sku} ${name}`)?.orders;
    pen.fillStyle = color('--text');
    pen.fillText(name, 4, i * row + row / 2 - (waits ? 8 : 0), left - 10);
    if (waits) pen.fillText(t('waits', waits), 4, i * row + row / 2 + 8, left - 10);
  });
  const bar = (l, fill, inset = 8) => {
    const i = rows.indexOf(l.holder), from = Math.max(left, x(l.from)), until = Math.min(width - 8, x(endOf(l, now)));
    if (until < left || from > width - 8) return;
    const wide = Math.max(l.fence ? 2 : 0, until - from);
    pen.fillStyle = fill;
    pen.fillRect(from, i * row + inset, wide, row - 2 * inset);
    if (l.fence) view.bars.push({from, wide, top: i * row, text: `${label(l.fence)}: ${t('token')} ${l.fence}`});
    if (wide > 40 && l.fence) {
      pen.fillStyle = color('--on-bar');
      pen.fillText(label(l.fence), from + 4, i * row + row / 2, wide - 6);
    }
  };
  leases.forEach((l) => bar({...l, fence: '', from: l.asked, until: l.from}, color('--line'), 16)); // it waited
  leases.forEach((l) => bar({...l, until: Math.min(endOf(l, now), l.expires ?? now)}, color(`--bar-${rows.indexOf(l.holder) % 6}`)));
  late.forEach((l) => bar({...l, fence: '', from: l.expires}, color('--warn'), 16)); // it worked on without the lease
  for (const pair of doubleHolds(leases, now)) {
    const from = pair[1].from, until = Math.min(...pair.map((l) => endOf(l, now)));
    pair.forEach((l) => bar({...l, from, until}, color('--bad')));
  }
  const note = (text, at, y) => { // on a ground of its own, as bars would hide it
    pen.fillStyle = color('--card');
    pen.fillRect(at, y - 7, pen.measureText(text).width + 4, 14);
    pen.fillStyle = color('--bad');
    pen.fillText(text, at + 2, y);
  };
  for (const r of state.refused.filter((r) => r.sku === sku && x(r.at) >= left && r.at <= now)) {
    note(`✕ ${label(r.fence)} < ${label(r.accepted)}`, Math.min(x(r.at), width - 160), rows.indexOf(r.holder) * row + 7);
  }
  for (const l of late.filter((l) => x(l.expires) >= left)) {
    const top = rows.indexOf(l.holder) * row;
    note(t('expired'), Math.min(x(l.expires) + 4, width - 60), top + row - 8);
    pen.fillRect(x(l.expires), top + 4, 2, row - 6);
  }
  pen.fillStyle = color('--muted');
  const marks = width < 500 ? 2 : 5;
  for (let i = 0; i <= marks; i++) {
    pen.fillText(i === marks ? ago ? new Date(now).toTimeString().slice(0, 8) : t('now') : `−${span * (marks - i) / marks / 1000} s`, Math.min(left + ((width - left - 8) * i) / marks, width - (i === marks && ago ? 56 : 34)), height - 10);
  }
}
