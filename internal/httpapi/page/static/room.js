// What only the owner of the processes sees and does: sales, and faults.

import {html, useLayoutEffect, useReducer, useRef, useState} from './vendor/htm-preact.js';
import {post, stream} from './api.js';
import {Chart} from './chart.js';
import {did} from './story.js';
import {t} from './text.js';
import {Tickets, verdict} from './tickets.js';

const minute = 60_000, between = 250; // milliseconds of the history, and between two states of it

// remember adds a state to the history: of the last minute, or of the last minute of a sale that has ended.
function remember(history, room) {
  const last = history.at(-1), now = Date.now(), sku = room.sale?.lanes[0].sku;
  if (last && last.room.sale?.lanes[0].sku !== sku) history.length = 0;
  if (last && (now - last.at < between || last.room.sale?.ended)) return;
  const sale = room.sale && {...room.sale, lanes: room.sale.lanes.map(({buyers, samples, ...lane}) => lane)};
  history.push({at: now, room: {...room, sale, lab: undefined}});
  while (history[0].at < now - minute) history.shift();
}

// before returns the room as it was at a moment of its history.
export function before(history, room, at) {
  const was = (history.findLast((h) => h.at <= at) ?? history[0])?.room;
  if (!was) return room;
  const lanes = was.sale?.lanes.map((lane, i) => {
    const {buyers, samples} = room.sale.lanes[i];
    return {...lane, buyers, samples: samples.filter((s) => s.at <= at)};
  });
  return {...room, ...was, lab: room.lab, sale: was.sale && {...was.sale, lanes}};
}

// useRoom returns what the room says of itself now, or why it does not, and what it said in the last minute. The stream is opened again when
// it breaks. It begins with the present state.
export function useRoom(enabled) {
  const [room, set] = useReducer((_, next) => next, {}), history = useRef([]);
  useLayoutEffect(() => {
    if (!enabled) return undefined;
    const stop = new AbortController();
    (async () => {
      while (!stop.signal.aborted) {
        try {
          for await (const {data} of stream('/lab/state', '', stop.signal)) {
            if (!data || stop.signal.aborted) continue;
            remember(history.current, data);
            set({now: data});
          }
          throw new Error('the stream has ended');
        } catch (err) {
          if (!stop.signal.aborted) set({lost: err.status ? err.message : t('lostRoom')});
        }
        await new Promise((done) => setTimeout(done, 1000));
      }
    })();
    return () => stop.abort();
  }, [enabled]);
  return {...room, history: history.current};
}

const losing = ['kill', 'redis-wipe']; // these lose data, so they ask
const actions = [['', ['pause', 'resume', 'stop', 'kill', 'start', 'reconnect']], ['redis', ['redis-wipe', 'redis-pause', 'redis-slow', 'redis-resume']],
  ['database', ['database-pause', 'database-slow', 'database-disconnect', 'database-resume']]];
const described = ['late', 'cut-off']; // a line below the instances says what these do

// useActions returns a function that makes buttons, and what went wrong with the last one.
function useActions(room) {
  const [error, fail] = useState('');
  const button = (action, instance = '') => {
    const what = `${t(`do-${action}`)} ${instance}`.trim();
    const act = async () => {
      if (losing.includes(action) && !confirm(`${what}? ${t(`say-${action}`)}.`)) return;
      fail('');
      const at = Date.now();
      try {
        await post(`/lab/actions/${action}?${new URLSearchParams({instance})}`);
        did(action, instance, room, at);
      } catch (err) { fail(`${what}: ${err.message}`); }
    };
    return html`<button key=${action} data-action=${action} data-instance=${instance} title=${t(`say-${action}`)} ...${described.includes(action) ? {'aria-label': what, 'aria-describedby': `say-${action}`} : {'aria-label': `${what}: ${t(`say-${action}`)}`}} onClick=${act}>${t(`do-${action}`)}</button> `;
  };
  return [button, error];
}

// Load is how many orders are in flight at an instance, and how many wait there for units.
export const Load = ({load}) => html`<span class="muted">${t('permitsInUse', load.in_use, load.permits, load.waiting)}</span>${load.degraded && html` <span class="warn">${t('degraded')}</span>`}`;

// figures are what a store did when it was last asked.
function figures({answered, latency_ms: latency, memory_bytes: memory}) {
  if (!answered) return html` · <span class="bad" data-figure="latency">${t('noAnswer')}</span>`;
  return html`${memory > 0 && html` · <span data-figure="memory">${(memory / 1048576).toFixed(1)} MB</span>`} · <span data-figure="latency">${latency.toFixed(1)} ms</span>`;
}

const possible = {running: ['pause', 'late', 'stop', 'kill'], paused: ['resume', 'kill'], ended: ['start'], stopped: ['start'], killed: ['start']};

// Instances lists the processes and the stores of a room, each with what can be done to it.
// Instances shows them as they were at the moment of the room. Its buttons act at once, so they are inert while that is not now.
export function Instances({room, state, inert}) {
  const [button, error] = useActions(room);
  const {redis, database} = room, stale = state.cluster.stale;
  const line = (m) => redis.line && (m.state === 'running' || m.state === 'paused') && button(m.cut_off ? 'reconnect' : 'cut-off', m.name);
  return html`<section class="instances owned" id="instances" aria-labelledby="instances-title" inert=${inert}><h2 id="instances-title">${t('instances')}</h2>
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    ${stale && html`<p class="warn">${stale}</p>`}
    <ul class="rows" id="machines">${room.instances.map((m) => html`<li key=${m.name} data-name=${m.name} data-state=${m.state}>
      <div><b>${m.name}</b> ${m.name === state.leader && html`<span class="badge">${t('leader')}</span> `}<span class=${m.state === 'running' ? 'good' : 'bad'}>${t(m.state)}</span>
        ${m.cut_off && html` <span class="bad">${t('cutOff')}</span>`}</div>
      <div class="muted">PID ${m.pid}${m.state === 'running' ? ` · ${(m.memory_bytes / 1048576).toFixed(0)} MB · ${m.ready ? t('ready') : t('notReady')} ${m.latency_ms.toFixed(1)} ms` : ''}</div>
      ${m.state === 'running' && m.permits > 0 && html`<div><${Load} load=${m} /></div>`}
      <p>${(possible[m.state] ?? []).map((a) => button(a, m.name))}${line(m)}</p></li>`)}
      <li data-store="redis"><div><b>Redis</b> <span class=${redis.state === 'up' ? 'good' : 'bad'}>${t(redis.state)}</span></div><div class="muted">${redis.kind}${figures(redis)}</div>
        <p>${redis.own && button('redis-wipe')}${redis.line && (redis.state === 'up' ? ['redis-pause', 'redis-slow'] : ['redis-resume']).map((a) => button(a))}</p></li>
      <li data-store="database"><div><b>${t('database')}</b> <span class=${database.state === 'up' ? 'good' : 'bad'}>${t(database.state)}</span></div><div class="muted">${database.kind}${figures(database)}</div>
        ${database.kind === 'sqlite' && html`<p class="muted">${t('noDatabaseFaults')}</p>`}
        ${database.line && html`<p>${(database.state === 'up' ? ['database-pause', 'database-slow', 'database-disconnect'] : ['database-resume']).map((a) => button(a))}</p>`}</li>
    </ul>
    ${described.filter((a) => a !== 'cut-off' || redis.line).map((a) => html`<p key=${a} id=${`say-${a}`} class="muted note">${t(`do-${a}`)}: ${t(`say-${a}`)}</p>`)}
    <details><summary>${t('allActions')}</summary><ul>${actions.map(([store, names]) => names.map((a) => html`<li key=${a}>${store && `${t(store)}: `}<b>${t(`do-${a}`)}</b>: ${t(`say-${a}`)}</li>`))}</ul></details></section>`;
}

// Sale is the storefront: the form of a sale, and its tickets. live is the room now, which a replay of room does not change.
export function Sale({room, live, state, children}) {
  const [error, fail] = useState('');
  const names = state.strategies.filter((s) => s.available).map((s) => s.name);
  const {sale} = room, running = live.sale?.running;
  const send = async (action, about, path, body) => {
    fail('');
    const at = Date.now();
    try {
      await post(path, body);
      did(action, about, live, at);
    } catch (err) { fail(err.message); }
  };
  const start = (event) => {
    event.preventDefault();
    const form = new FormData(event.target), number = (name) => Number(form.get(name)), strategies = [form.get('first'), form.get('second')].filter(Boolean);
    send('sale', {units: number('units'), strategies}, '/lab/sale', {strategies, units: number('units'), attempts: number('attempts'), buyers: number('buyers'), wait_s: number('wait')});
  };
  const select = (name, chosen, more) => html`<label>${t(name)} <select name=${name}>${more}${names.map((n) => html`<option key=${n} value=${n} selected=${n === chosen}>${n}</option>`)}</select></label> `;
  const number = (name, value, max, min = 1) => html`<label>${t(name)} <input name=${name} type="number" min=${min} max=${max} defaultValue=${value} required /></label> `;
  return html`<section class="wide" id="tickets" aria-labelledby="sale-title"><h2 id="sale-title">${t('sale')}</h2>
    ${names.length > 0 && html`<form id="sale" onSubmit=${start}>${select('first', 'naive')}${select('second', 'redis', html`<option value="">${t('none')}</option>`)}
      ${number('units', 1000, 100000)}${number('attempts', 1500, 1000000)}${number('buyers', 32, 256)}${number('wait', 0, 30, 0)}
      <button disabled=${running}>${t('start')}</button> <button type="button" disabled=${!running} onClick=${() => send('stop-sale', '', '/lab/sale/stop')}>${t('stop')}</button>
      <button type="button" data-action="late-holder" disabled=${!running} title=${t('sayLateHolder')} aria-label=${`${t('lateHolder')}: ${t('sayLateHolder')}`} onClick=${() => send('late-holder', '', '/lab/late')}>${t('lateHolder')}</button></form>`}
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    ${sale ? html`<div class="lanes">${sale.lanes.map((l) => html`<${SaleLane} key=${l.sku} lane=${l} units=${sale.order.units} running=${sale.running} />`)}</div>
      ${children}<p class="muted note">${t('ticketRule')}</p>` : html`<p class="empty">${t('noSale')}</p>`}
  </section>`;
}

// What keeps a strategy without a lease from overselling, or does not.
const kinds = {naive: 'noLock', local: 'localLock', conditional: 'oneStatement', optimistic: 'versionCheck', 'for-update': 'rowLock', lua: 'luaStock'};

// leased reports whether a strategy takes a lease.
export const leased = (strategy) => !(strategy in kinds);

function SaleLane({lane, units, running}) {
  const {books} = lane, {kind, text} = verdict(lane, units, running), known = books && !books.error;
  const bad = ['oversold', 'lost', 'undersold', 'broken'].includes(kind), good = kind === 'exact';
  const figure = (name, text, value, more = {}) => html`<div><dt>${text}</dt><dd data-figure=${name} ...${more}>${value}</dd></div>`;
  const times = lane.samples.map((s) => s.at / 1000);
  return html`<article data-strategy=${lane.strategy}><h3>${t(kinds[lane.strategy] ?? 'withLock')} <span class="muted">${lane.strategy} <code>${lane.sku}</code></span></h3>
    <p class=${`verdict ${bad ? 'bad' : good ? 'good' : ''}`} data-verdict=${kind} role="status">${text}</p>
    <${Tickets} lane=${lane} units=${units} />
    <div class="instants"><div><p class="instant">${t(running ? 'nowCounted' : 'inTheSale')}</p><dl>${figure('accepted', t('sold'), lane.accepted)}${figure('rejected', t('refusedOrders'), lane.rejected)}${figure('failed', t('unanswered'), lane.failed, {title: lane.failure})}</dl></div>
    ${known && html`<div><p class="instant">${t('audited', new Date(books.at).toTimeString().slice(0, 8))}</p><dl>${figure('stored', t('stored'), books.accepted)}${figure('left', t('left'), books.on_hand - books.reserved)}${figure('lost', t('lostUpdates'), books.lost_updates, {class: books.lost_updates ? 'bad' : ''})}</dl></div>`}</div>
    ${(books?.error || books?.broken?.length > 0) && html`<details><summary>${t('auditSays')}</summary><p lang="en">${books.error || books.broken.join('; ')}</p></details>`}
    <div class="charts"><${Chart} name=${t('perSecond')} tone="--bar-0" times=${times} values=${lane.samples.map((s) => s.per_second)} />
      <${Chart} name=${t('p99')} tone="--bar-3" times=${times} values=${lane.samples.map((s) => s.p99_ms)} /></div>
  </article>`;
}
