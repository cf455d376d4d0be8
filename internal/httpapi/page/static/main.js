// The control room.

import {html, render, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState} from './vendor/htm-preact.js';
import {apiKey, post, roomToken, setAPIKey, sharing} from './api.js';
import {Lane} from './lane.js';
import {Labs} from './labs.js';
import {Load, Machines, Sale, useRoom} from './room.js';
import {State} from './state.js';
import {language, setLanguage, t} from './text.js';

function Room() {
  const [, redraw] = useReducer((n) => n + 1, 0);
  const [paused, pause] = useState(false);
  const [hidden, hide] = useState(document.hidden);
  const idle = paused || hidden && !sharing(); // a browser has few connections for all of its tabs
  const [session, restart] = useReducer((n) => n + 1, 0);
  const [sku, choose] = useState('');
  const now = useRef(); // for what counts down
  if (!paused) now.current = Date.now();
  const s = useMemo(() => {
    let due = false; // many events a second are one drawing
    return new State(() => {
      if (due) return;
      due = true;
      setTimeout(() => { due = false; redraw(); }, 200);
    });
  }, [session]);
  useLayoutEffect(() => { // a page that says that it is paused reads nothing any more
    if (idle) return undefined; // nothing is read, so nothing changes; then the page resumes after the last event that it has
    const stop = new AbortController();
    s.run(stop.signal);
    const refresh = setInterval(() => s.refresh(stop.signal), 5000), clock = setInterval(redraw, 1000);
    return () => { stop.abort(); clearInterval(clock); clearInterval(refresh); };
  }, [s, idle]);
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', redraw);
    return () => scheme.removeEventListener('change', redraw);
  }, []);
  useEffect(() => {
    const seen = () => hide(document.hidden);
    document.addEventListener('visibilitychange', seen);
    return () => document.removeEventListener('visibilitychange', seen);
  }, []);
  const latest = [...s.leases.values()].at(-1)?.sku ?? [...s.skus.keys()].sort()[0] ?? '';
  const shown = sku || latest;
  const lane = html`<${Lane} state=${s} sku=${shown} paused=${paused} />`;
  return html`
    <header class=${paused ? 'sticky' : ''}><h1>${t('title')}</h1>
      <span id="connection" role="status" class=${paused ? 'lost' : s.connection}>${t(paused ? 'paused' : s.connection)}</span>
      ${paused && html`<span id="paused" class="warn">${t('pausedPage')}</span>`}
      ${!paused && s.connection === 'lost' && html`<span id="lost" class="warn">${t('lostPage')}</span>`}
      ${s.resets > 1 && html`<span id="reloads" class="muted">${t('reloaded', s.resets - 1)}</span>`}
      <button onClick=${() => pause(!paused)} aria-pressed=${paused}>${paused ? t('resume') : t('pause')}</button>
      <button onClick=${() => { setLanguage(language() === 'en' ? 'zh' : 'en'); redraw(); }} lang=${language() === 'en' ? 'zh' : 'en'}>${language() === 'en' ? '中文' : 'English'}</button>
      <a href="/docs">API</a></header>
    ${s.connection === 'refused' && html`<${Key} why=${s.error} again=${restart} />`}
    <main>
      ${roomToken ? html`<${Owned} state=${s} lane=${lane} idle=${idle} />` : lane}
      <${Stock} state=${s} sku=${shown} choose=${choose} />
      <${Members} state=${s} />
      <${Orders} state=${s} now=${now.current} />
      <${Events} state=${s} />
    </main>`;
}

// Owned puts around the lock lane what the page of a room has beyond that of an instance.
function Owned({state, lane, idle}) {
  const {now: room, lost} = useRoom(idle);
  return html`${lost && html`<p id="lost-room" class="wide bad" role="alert">${lost}</p>`}${room && html`<${Sale} room=${room} state=${state} />`}${lane}${room && html`<${Machines} room=${room} leader=${state.leader} />`}${room && html`<${Labs} run=${room.lab} />`}`;
}

function Key({why, again}) {
  const submit = (event) => { event.preventDefault(); setAPIKey(new FormData(event.target).get('key').trim()); again(); };
  return html`<form class="key" onSubmit=${submit}><label>${t('key')} <input name="key" type="password" autocomplete="off" defaultValue=${apiKey()} required /></label>
    <button>${t('open')}</button> <span class="warn">${why}</span></form>`;
}

function Stock({state, sku, choose}) {
  const skus = [...state.skus.values()].sort((a, b) => a.sku.localeCompare(b.sku)).slice(0, 100);
  return html`<section aria-labelledby="stock-title"><h2 id="stock-title">${t('stock')}</h2>
    ${skus.length === 0 ? html`<p class="muted">${t('noStock')}</p>` : html`<table id="stock"><thead><tr><th>SKU</th><th>${t('strategy')}</th>
      <th>${t('onHand')}</th><th>${t('reserved')}</th><th>${t('available')}</th></tr></thead>
    <tbody>${skus.map((k) => html`<tr key=${k.sku} class=${k.sku === sku ? 'chosen' : ''}>
      <td><button class="link" onClick=${() => choose(k.sku)} aria-current=${k.sku === sku}>${k.sku}</button></td><td>${k.strategy}</td>
      <td class="number">${k.on_hand}</td><td class="number">${k.reserved}</td>
      <td class=${'number ' + (k.available < 0 ? 'bad' : '')}>${k.available < 0 ? t('oversoldBy', -k.available) : k.available}</td></tr>`)}</tbody></table>`}
  </section>`;
}

function Members({state}) {
  const {load} = state.cluster;
  return html`<section aria-labelledby="members-title"><h2 id="members-title">${t('members')}</h2>
    <ul class="cards">${[...state.members.values()].map((m) => html`<li key=${m.name}><b>${m.name}</b>
      ${m.name === state.leader && html` <span class="badge">${t('leader')}</span>`}<br /><span class="muted">${m.address}</span></li>`)}</ul>
    ${state.cluster.stale && html`<p class="warn">${state.cluster.stale}</p>`}
    ${load && html`<p id="load"><b>${load.instance}</b>: <${Load} load=${load} /></p>`}
    <h3>${t('settings')}</h3><table><tbody>${state.cluster.config.map((c) => html`<tr key=${c.name}><th scope="row">${c.name}</th><td>${c.value}</td></tr>`)}</tbody></table>
    <h3>${t('strategies')}</h3><p>${state.strategies.map((k) => html`<span key=${k.name} class=${'badge ' + (k.store_unavailable ? 'bad' : k.available ? '' : 'muted')}>${k.name}</span> `)}</p>
  </section>`;
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

function Orders({state, now}) {
  const open = (o) => Number(o.status === 'PENDING' || o.status === 'QUEUED');
  const orders = [...state.orders.values()].reverse().sort((a, b) => open(b) - open(a)).slice(0, 15);
  return html`<section aria-labelledby="orders-title"><h2 id="orders-title">${t('orders')}</h2>
    <table><thead><tr><th>${t('order')}</th><th>${t('items')}</th><th>${t('status')}</th><th>${t('expiresIn')}</th>${roomToken && html`<th>${t('actions')}</th>`}</tr></thead>
    <tbody>${orders.map((o) => html`<tr key=${o.id}><td><code>${o.id.slice(-8)}</code></td>
      <td>${o.items.map((i) => `${i.quantity} × ${i.sku}`).join(', ')}</td><td>${o.status}</td><td class="number">${left(o, now)}</td>
      ${roomToken && html`<td>${o.status === 'PENDING' && ['pay', 'cancel'].map((what) => html`<button key=${what} aria-label=${`${t(what)} ${o.id}`} onClick=${() => settle(o, what)}>${t(what)}</button> `)}</td>`}</tr>`)}</tbody></table>
    ${roomToken && html`<p><button data-action="unpaid" title=${t('sayUnpaid')} onClick=${() => post('/lab/unpaid').catch((err) => alert(err.message))}>${t('unpaid')}</button> <span class="muted">${t('sayUnpaid')}</span></p>`}
    <${Delays} delays=${state.delays} />
  </section>`;
}

// settle pays or cancels an order. What becomes of it is in the events.
function settle(order, what) {
  post(`/api/v1/orders/${order.id}/${what}`, what === 'pay' ? {payment_id: `room-${order.id}`} : undefined).catch((err) => alert(err.message));
}

// left is the time until an unpaid order expires.
function left(order, now) {
  if (order.status !== 'PENDING' && order.status !== 'QUEUED') return '';
  const s = Math.max(0, Math.round((Date.parse(order.expires_at) - now) / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

function Events({state}) {
  const [filter, setFilter] = useState('');
  const shown = state.events.filter((e) => `${e.type} ${e.instance} ${e.text}`.includes(filter)).slice(0, 30);
  return html`<section class="wide" aria-labelledby="events-title"><h2 id="events-title">${t('events')}</h2>
    <label>${t('filter')} <input type="search" value=${filter} onInput=${(e) => setFilter(e.target.value)} /></label>
    <ol class="events">${shown.map((e) => html`<li key=${e.number}><time>${e.at.slice(11, 23)}</time> <b>${e.type}</b> ${e.instance} <code>${e.text}</code></li>`)}</ol>
  </section>`;
}

render(html`<${Room} />`, document.getElementById('room'));
