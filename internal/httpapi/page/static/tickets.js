// The tickets of one lane of a sale: who got which. Ticket n goes to the nth buyer whose order was accepted. After the last ticket the count
// begins again, so the next buyer gets a ticket that is sold already.

import {html, useEffect, useRef, useState} from './vendor/htm-preact.js';
import {t} from './text.js';

const most = 1000; // cells; more tickets share cells
const columns = [10, 20, 25, 40, 50, 100], tallest = 280; // pixels, unless 100 columns are taller

// twice returns how many tickets have more than one buyer.
export const twice = (accepted, units) => Math.min(units, Math.max(0, accepted - units));

// buyersOf returns how many buyers a ticket has, and the numbers of those that are known.
export function buyersOf(ticket, {accepted, buyers}, units) {
  const of = [];
  let count = 0;
  for (let n = ticket - 1; n < accepted; n += units, count++) if (buyers[n] !== undefined) of.push(buyers[n]);
  return {count, of};
}

// verdict says in words what has become of the stock, and of which kind that is.
export function verdict({accepted, books}, units, running) {
  const over = Math.max(books?.oversold ?? 0, accepted - units);
  if (over > 0) return {kind: 'oversold', text: over > units ? t('allSoldTwice', units, units + over) : t('soldTwice', over)};
  if (!books) return running && accepted > 0 ? {kind: 'so-far', text: t('onceSoFar')} : {kind: '', text: t('notAudited')};
  if (books.error) return {kind: 'failed', text: t('auditFailed')};
  if (books.lost_updates > 0) return {kind: 'lost', text: t('updatesLost', books.lost_updates)};
  if (books.undersold > 0) return {kind: 'undersold', text: t('undersold', books.undersold)};
  if (books.broken?.length > 0) return {kind: 'broken', text: t('recordsDiffer')};
  if (running) return {kind: 'so-far', text: t('onceSoFar')};
  return {kind: 'exact', text: accepted < units ? t('noneTwice') : t('once')};
}

// sold says who has a ticket.
function sold(ticket, lane, units) {
  const {count, of} = buyersOf(ticket, lane, units), names = of.slice(0, 2).map((n) => `buyer-${n}`);
  if (count === 0) return t('unsoldTicket', ticket);
  if (names.length < Math.min(2, count)) return t('ticketTimes', ticket, count); // the room keeps the names of some
  return t('ticketOf', ticket, names.join(t('and')), count - names.length);
}

export function Tickets({lane, units}) {
  const canvas = useRef(), view = useRef();
  const [pointed, point] = useState(0);
  view.current = {...view.current, accepted: lane.accepted, units};
  const paint = () => { view.current.at = draw(canvas.current, view.current); };
  useEffect(paint);
  useEffect(() => {
    const resized = new ResizeObserver(paint);
    resized.observe(canvas.current);
    return () => resized.disconnect();
  }, []);
  const show = (e) => point(view.current.at?.(e.offsetX, e.offsetY) ?? 0);
  const again = twice(lane.accepted, units), latest = lane.accepted && (lane.accepted - 1) % units + 1;
  const first = Array.from({length: Math.min(again, 3)}, (_, i) => again - i);
  return html`<canvas class="tickets" ref=${canvas} role="img" aria-label=${t('ticketsLabel', units, Math.min(units, lane.accepted), again)}
      onPointerDown=${show} onPointerMove=${show} onPointerLeave=${(e) => { if (e.pointerType === 'mouse') point(0); }}></canvas>
    <p class="pointed">${pointed ? sold(pointed, lane, units) : latest ? t('latestSale', sold(latest, lane, units)) : t('noSaleYet')}</p>
    ${again > 0 && html`<ul class="twice">${first.map((n) => html`<li key=${n}>${sold(n, lane, units)}</li>`)}
      ${again > first.length && html`<li class="muted">${t('andMore', again - first.length)}</li>`}</ul>`}`;
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// draw draws a cell per ticket, or per group of tickets: blue as far as they are sold, red as far as they are sold twice. It returns a
// function that finds the ticket at a point.
function draw(canvas, {accepted, units}) {
  const width = canvas.clientWidth, scale = devicePixelRatio, group = Math.ceil(units / most), cells = Math.ceil(units / group);
  const margin = 8 + 7 * String(units).length;
  const across = columns.find((n) => Math.ceil(cells / n) * Math.floor((width - margin) / n) <= tallest) ?? columns.at(-1);
  const side = Math.min(40, Math.max(3, (width - margin) / across)), rows = Math.ceil(cells / across), height = Math.ceil(rows * side);
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  const gap = side > 8 ? 2 : 1, inner = side - gap, numbered = group === 1 && side >= 24;
  const blue = color('--bar-0'), red = color('--bad'), line = color('--line'), muted = color('--muted'), onBar = color('--on-bar'), text = color('--text');
  for (let row = 0, next = 0; row < rows; row++) {
    if (row * side < next) continue;
    next = row * side + 14;
    pen.fillStyle = muted;
    pen.textAlign = 'right';
    pen.fillText(row * across * group + 1, margin - 5, Math.max(6, row * side + inner / 2));
  }
  pen.textAlign = 'center';
  for (let i = 0; i < cells; i++) {
    const x = margin + i % across * side, y = Math.floor(i / across) * side, before = i * group, size = Math.min(group, units - before);
    const fill = (share, style) => {
      pen.fillStyle = style;
      pen.fillRect(x, y + inner * (1 - share), inner, inner * share);
    };
    const share = (n) => Math.min(1, Math.max(0, (n - before) / size));
    fill(1, line);
    fill(share(accepted), blue);
    fill(share(accepted - units), red);
    if (share(accepted - units) > 0 && !numbered && side >= 6) { // so that the color is not all that says so
      pen.fillStyle = onBar;
      pen.fillRect(x + inner * .25, y + inner / 2 - .5, inner * .5, 1);
    }
    if (numbered) {
      pen.fillStyle = accepted > before ? onBar : muted;
      pen.fillText(accepted - units > before ? `${before + 1} ✕` : before + 1, x + inner / 2, y + inner / 2, inner - 2);
    }
  }
  if (accepted > 0) { // the latest one
    const i = Math.floor((accepted - 1) % units / group);
    pen.strokeStyle = text;
    pen.lineWidth = 2;
    pen.strokeRect(margin + i % across * side, Math.floor(i / across) * side, inner, inner);
  }
  return (px, py) => {
    const column = Math.floor((px - margin) / side), cell = Math.floor(py / side) * across + column;
    return column < 0 || column >= across || cell >= cells ? 0 : cell * group + 1;
  };
}
