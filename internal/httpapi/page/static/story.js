// What just happened: for each button that was pressed, one sentence that says what was done and what the page has seen of it since.

import {html} from './vendor/htm-preact.js';
import {expired} from './state.js';
import {t} from './text.js';

const kept = 4;
export const lateHolder = 'late holder'; // the name of the process
let pressed = []; // the latest one first

// did records a button that has had its effect. at is when it was pressed: what followed may be older than the response.
export function did(action, about, room, at) {
  pressed = [{action, about, at, sale: room?.sale, facts: []}, ...pressed.slice(0, kept - 1)];
}

const pausing = ['pause', 'late', 'kill', 'late-holder'];
const sum = (sale, figure) => sale.lanes.reduce((n, lane) => n + lane[figure], 0);

// tell returns what was done, and what has followed.
export function tell(press, state, room, now) {
  const {action, about, sale} = press, said = [t(`did-${action}`, about)];
  if (pausing.includes(action)) said.push(...lostLease(press, state, now));
  const same = action !== 'stop-sale' && sale?.running && room?.sale?.lanes[0].sku === sale.lanes[0].sku;
  if (same) said.push(t('sinceThen', sum(room.sale, 'accepted') - sum(sale, 'accepted'), sum(room.sale, 'failed') - sum(sale, 'failed')));
  return said.join(t('semicolon')) + t('period');
}

// lostLease says what became of the lease that a holder had at a moment: it expired, another holder got the next one, and the row refused
// the late write. The facts outlast the lease, which the page forgets.
function lostLease(press, state, now) {
  const {action, about, at, facts} = press, holder = action === 'late-holder' ? lateHolder : about, leases = [...state.leases.values()];
  const lost = leases.find((l) => press.lost ? l.sku === press.lost.sku && l.fence === press.lost.fence
    : l.holder === holder && l.expires > at && expired(l, now) && (holder === lateHolder ? l.from >= at : l.from <= at + 1000));
  if (lost) {
    press.lost = lost;
    const number = (fence) => `#${state.ordinals(lost.sku).get(fence)}`;
    const next = leases.filter((l) => l.sku === lost.sku && l.holder !== holder && l.fence > lost.fence).sort((a, b) => a.fence - b.fence)[0];
    const refused = state.refused.find((r) => r.sku === lost.sku && r.holder === holder && r.fence === lost.fence);
    facts[0] = {at: lost.expires, said: ['leaseExpired', number(lost.fence), ((lost.expires - lost.from) / 1000).toFixed(1)]};
    if (next) facts[1] = {at: next.from, said: ['nextGot', next.holder, number(next.fence)]};
    if (refused) facts[2] = {at: refused.at, said: ['lateRefused', number(lost.fence)]};
    else if (lost.until && lost.sku.startsWith('redis-unfenced-')) facts[2] = {at: lost.until, said: ['lateUnchecked', number(lost.fence)]};
  }
  const seen = facts.filter((f) => f.at <= now).map((f) => t(...f.said));
  return seen.length || now - at <= 8000 || action === 'pause' ? seen : [t(holder === lateHolder ? 'gotNoLease' : 'heldNoLease')];
}

export function Story({state, room, now}) {
  const seen = pressed.filter((p) => p.at <= now); // a page that is paused, or shows an earlier moment, has not seen the others
  return html`<section id="story" aria-labelledby="story-title"><h2 id="story-title">${t('story')}</h2>
    ${seen.length === 0 && html`<p class="muted">${t('noStory')}</p>`}
    <div role="log" aria-labelledby="story-title"><ol>${seen.map((p) => html`<li key=${p.at}><time>${new Date(p.at).toTimeString().slice(0, 8)}</time> ${tell(p, state, room, now)}</li>`)}</ol></div></section>`;
}
