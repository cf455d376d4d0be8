// The records: orders, events, stock and settings, each as a list, with the details of what is chosen.

import {html, useState} from './vendor/htm-preact.js';
import {post, roomToken} from './api.js';
import {did} from './story.js';
import {t} from './text.js';
import {Trace} from './trace.js';

const views = {orders: Orders, events: Events, stock: Stock, settings: Settings};

export function Records(props) {
  const [view, show] = useState('orders');
  return html`<section class="wide" id="records" aria-labelledby="records-title"><h2 id="records-title">${t('records')}</h2>
    <p class="tabs" role="group" aria-label=${t('records')}>${Object.keys(views).map((name) => html`<button key=${name} data-records=${name} aria-pressed=${name === view} onClick=${() => show(name)}>${t(name)}</button> `)}</p>
    <${views[view]} ...${props} /></section>`;
}

function Stock({state, sku, choose}) {
  const skus = [...state.skus.values()].sort((a, b) => a.sku.localeCompare(b.sku)).slice(0, 100);
  if (skus.length === 0) return html`<p class="muted">${t('noStock')}</p>`;
  return html`<p class="muted note">${t('sayStock')}</p><div class="scroll" tabindex="0" role="region" aria-label=${t('stock')}><table id="stock"><thead><tr><th>SKU</th><th>${t('strategy')}</th>
      <th>${t('onHand')}</th><th>${t('reserved')}</th><th>${t('available')}</th></tr></thead>
    <tbody>${skus.map((k) => html`<tr key=${k.sku} class=${k.sku === sku ? 'chosen' : ''}>
      <td><button class="link" onClick=${() => choose(k.sku)} aria-current=${k.sku === sku}>${k.sku}</button></td><td>${k.strategy}</td>
      <td class="number">${k.on_hand}</td><td class="number">${k.reserved}</td>
      <td class=${'number ' + (k.available < 0 ? 'bad' : '')}>${k.available < 0 ? t('oversoldBy', -k.available) : k.available}</td></tr>`)}</tbody></table></div>`;
}

function Settings({state}) {
  return html`<div class="halves"><div><h3>${t('settings')}</h3><table><tbody>${state.cluster.config.map((c) => html`<tr key=${c.name}><th scope="row">${c.name}</th><td>${c.value}</td></tr>`)}</tbody></table></div>
    <div><h3>${t('strategies')}</h3><p>${state.strategies.map((k) => html`<span key=${k.name} class=${'badge ' + (k.store_unavailable ? 'bad' : k.available ? '' : 'muted')}>${k.name}</span> `)}</p></div></div>`;
}

// Delays shows how long after their expiry orders released their units.
const buckets = [0, 5, 10, 20, 50, 100, 200, 500, 1000, Infinity]; // milliseconds, each without its end

function Delays({delays}) {
  const counts = buckets.map((end, i) => delays.filter((d) => d < end && (i === 0 || d >= buckets[i - 1])).length);
  const most = Math.max(1, ...counts);
  const name = (i) => i === 0 ? t('early') : buckets[i] === Infinity ? `≥ ${buckets[i - 1]} ms` : `< ${buckets[i]} ms`;
  return html`<h3>${t('delays', delays.length)}</h3>${delays.length > 0 && html`<table id="delays"><tbody>
    ${counts.map((n, i) => (i > 0 || n > 0) && html`<tr key=${i}><th scope="row" class="number">${name(i)}</th>
      <td class="wide-cell"><meter min="0" max=${most} value=${n} aria-label=${`${name(i)}: ${n}`}></meter></td><td class=${`number ${i === 0 ? 'bad' : ''}`}>${n}</td></tr>`)}</tbody></table>`}`;
}

function Orders({state, room, now}) {
  const [chosen, choose] = useState('');
  const [error, fail] = useState('');
  const orders = [...state.orders.values()].reverse().slice(0, 12), order = state.orders.get(chosen) ?? orders[0];
  const act = async (action, about, path, body) => {
    fail('');
    const at = Date.now();
    try {
      await post(path, body);
      did(action, about, room, at);
    } catch (err) { fail(err.message); }
  };
  // A chosen order stays, whatever becomes of it.
  const settle = (o, what) => {
    if (what === 'cancel' && !confirm(t('askCancel', o.id))) return;
    choose(o.id);
    act(what, o.id, `/api/v1/orders/${o.id}/${what}`, what === 'pay' ? {payment_id: `room-${o.id}`} : undefined);
  };
  // A unit that comes back during its sale is sold again: its ticket would look as if it was sold twice.
  const inSale = (o) => room?.sale?.running && o.items.some((i) => room.sale.lanes.some((l) => l.sku === i.sku));
  return html`<div id="orders">${error && html`<p class="bad" role="alert">${error}</p>`}
    <div class="halves"><div><table><thead><tr><th>${t('order')}</th><th>${t('items')}</th><th>${t('status')}</th><th>${t('expiresIn')}</th>${roomToken && html`<th>${t('actions')}</th>`}</tr></thead>
    <tbody>${orders.map((o) => html`<tr key=${o.id} class=${o === order ? 'chosen' : ''}><td><button class="link" aria-current=${o === order} onClick=${() => choose(o.id)}><code>${o.id.slice(-8)}</code></button></td>
      <td>${o.items.map((i) => `${i.quantity} × ${i.sku}`).join(', ')}</td><td>${o.status}</td><td class="number">${left(o, now)}</td>
      ${roomToken && html`<td>${o.status === 'PENDING' && (inSale(o) ? ['pay'] : ['pay', 'cancel']).map((what) => html`<button key=${what} aria-label=${`${t(what)} ${o.id}`} onClick=${() => settle(o, what)}>${t(what)}</button> `)}</td>`}</tr>`)}</tbody></table></div>
    <div>${order && html`<div class="detail" data-order=${order.id}><h3>${t('order')} <code>${order.id}</code></h3><p><b>${order.status}</b>: ${meaning(order, now)}</p>
      <p class="muted">${order.customer_id} · ${order.items.map((i) => `${i.quantity} × ${i.sku}`).join(', ')}</p>
      ${order.id === chosen ? html`<${Trace} key=${order.id} order=${order} />` : html`<p class="muted">${t('clickForTrace')}</p>`}</div>`}
    ${roomToken && html`<p><button data-action="unpaid" title=${t('sayUnpaid')} onClick=${() => act('unpaid', '', '/lab/unpaid')}>${t('unpaid')}</button> <span class="muted">${t('sayUnpaid')}</span></p>`}
    <${Delays} delays=${state.delays} /></div></div></div>`;
}

// left is the time until an unpaid order expires.
function left(order, now) {
  if (order.status !== 'PENDING' && order.status !== 'QUEUED') return '';
  const s = Math.max(0, Math.round((Date.parse(order.expires_at) - now) / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

// meaning says what the status of an order means for its units.
function meaning(order, now) {
  const late = Date.parse(order.changed_at) - Date.parse(order.expires_at), at = new Date(order.expires_at).toTimeString().slice(0, 8);
  if (order.status === 'EXPIRED') return Number.isNaN(late) ? t('isExpired', at) : t('isExpiredAfter', at, late);
  return t(`is-${order.status}`, left(order, now), order.reason);
}

// inWords says what an event is about.
export function inWords(type, event) {
  const items = (all) => all.map((i) => `${i.quantity} × ${i.sku}`).join(', ');
  switch (type) {
    case 'order': return `${event.id} ${event.status}: ${items(event.items)}`;
    case 'stock': return t('eventStock', event.sku, event.available, event.on_hand, event.reserved);
    case 'lock': return [event.count ? t('eventLock', event.sku, event.count) : t('eventLeases', event.sku), event.waiting > 0 && t('eventWaiting', event.waiting), event.refused?.length > 0 && t('eventRefused', event.refused.length)].filter(Boolean).join(t('semicolon'));
    case 'timer': return `${event.kind}: ${Object.entries(event.outcomes).map(([name, n]) => `${n} ${name}`).join(', ')}`;
    case 'member': return t(event.left ? 'eventLeft' : 'eventJoined', event.name, event.address);
    case 'leader': return t(event.ended ? 'eventLeads' : 'eventLeader', event.name, event.term);
    default: return '';
  }
}

function Events({state}) {
  const [filter, setFilter] = useState(''), [chosen, choose] = useState();
  const all = state.events.filter((e) => `${e.type} ${e.instance} ${e.text}`.includes(filter)).slice(0, 20);
  const event = state.events.find((e) => e.number === chosen) ?? all[0];
  return html`<label>${t('filter')} <input type="search" value=${filter} onInput=${(e) => setFilter(e.target.value)} /></label>
    <div class="halves"><ol class="events">${all.map((e) => html`<li key=${e.number} class=${e === event ? 'chosen' : ''}><button class="row" aria-current=${e === event} onClick=${() => choose(e.number)}><time>${e.at.slice(11, 23)}</time> <b>${e.type}</b> ${e.instance}: ${inWords(e.type, JSON.parse(e.text))}</button></li>`)}</ol>
    ${event && html`<div class="detail"><h3>${event.type} · ${event.instance} · ${event.at.slice(11, 23)}</h3><pre tabindex="0" lang="en">${JSON.stringify(JSON.parse(event.text), null, 2)}</pre></div>`}</div>`;
}
