// What only the owner of the processes sees and does: sales, and faults.

import {html, useEffect, useLayoutEffect, useReducer, useRef, useState} from './vendor/htm-preact.js';
import {post, stream} from './api.js';
import {language, t} from './text.js';
import uPlot from './vendor/uplot.js';

// useRoom returns what the room says of itself now, or why it does not. The stream is opened again when it breaks. It begins with the
// present state.
export function useRoom(paused) {
  const [room, set] = useReducer((_, next) => next, {});
  useLayoutEffect(() => {
    if (paused) return undefined;
    const stop = new AbortController();
    (async () => {
      while (!stop.signal.aborted) {
        try {
          for await (const {data} of stream('/lab/state', '', stop.signal)) if (data && !stop.signal.aborted) set({now: data});
          throw new Error('the stream has ended');
        } catch (err) {
          if (!stop.signal.aborted) set({lost: err.status ? err.message : t('lostRoom')});
        }
        await new Promise((done) => setTimeout(done, 1000));
      }
    })();
    return () => stop.abort();
  }, [paused]);
  return room;
}

const losing = ['kill', 'redis-wipe']; // these lose data, so they ask
const actions = [['', ['pause', 'resume', 'stop', 'kill', 'start', 'reconnect']], ['redis', ['redis-wipe', 'redis-pause', 'redis-slow', 'redis-resume']],
  ['database', ['database-pause', 'database-slow', 'database-disconnect', 'database-resume']]];
const described = ['late', 'cut-off']; // a line below the instances says what these do

// useActions returns a function that makes buttons, and what went wrong with the last one.
function useActions() {
  const [error, fail] = useState('');
  const button = (action, instance = '') => {
    const what = `${t(`do-${action}`)} ${instance}`.trim();
    const act = async () => {
      if (losing.includes(action) && !confirm(`${what}? ${t(`say-${action}`)}.`)) return;
      fail('');
      try {
        await post(`/lab/actions/${action}?${new URLSearchParams({instance})}`);
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

export function Machines({room, leader}) {
  const [button, error] = useActions();
  const {redis, database} = room;
  const possible = (m) => ({running: ['pause', 'late', 'stop', 'kill'], paused: ['resume', 'kill'], ended: ['start']}[m.state] ?? []);
  return html`<section class="wide" aria-labelledby="machines-title"><h2 id="machines-title">${t('machines')}</h2>
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    <ul class="cards" id="machines">${room.instances.map((m) => html`<li key=${m.name} data-name=${m.name} data-state=${m.state}>
      <b>${m.name}</b> ${m.name === leader && html`<span class="badge">${t('leader')}</span> `}<span class=${m.state === 'running' ? 'good' : 'bad'}>${t(m.state)}</span>
      ${m.cut_off && html` <span class="bad">${t('cutOff')}</span>`}<br />
      <span class="muted">PID ${m.pid}${m.state === 'running' ? ` · ${(m.memory_bytes / 1048576).toFixed(0)} MB · ${m.ready ? t('ready') : t('notReady')} ${m.latency_ms.toFixed(1)} ms` : ''}</span>
      ${m.state === 'running' && m.permits > 0 && html`<br /><${Load} load=${m} />`}
      <p>${possible(m).map((a) => button(a, m.name))}${redis.line && button(m.cut_off ? 'reconnect' : 'cut-off', m.name)}</p></li>`)}
      <li data-store="redis"><b>Redis</b> <span class=${redis.state === 'up' ? 'good' : 'bad'}>${t(redis.state)}</span><br /><span class="muted">${redis.kind}${figures(redis)}</span>
        <p>${redis.own && button('redis-wipe')}${redis.line && (redis.state === 'up' ? ['redis-pause', 'redis-slow'] : ['redis-resume']).map((a) => button(a))}</p></li>
      <li data-store="database"><b>${t('database')}</b> <span class=${database.state === 'up' ? 'good' : 'bad'}>${t(database.state)}</span><br /><span class="muted">${database.kind}${figures(database)}</span>
        ${database.kind === 'sqlite' && html`<p class="muted">${t('noDatabaseFaults')}</p>`}
        ${database.line && html`<p>${(database.state === 'up' ? ['database-pause', 'database-slow', 'database-disconnect'] : ['database-resume']).map((a) => button(a))}</p>`}</li>
    </ul>
    ${described.filter((a) => a !== 'cut-off' || redis.line).map((a) => html`<p key=${a} id=${`say-${a}`} class="muted">${t(`do-${a}`)}: ${t(`say-${a}`)}</p>`)}
    <details><summary>${t('allActions')}</summary><ul>${actions.map(([store, names]) => names.map((a) => html`<li key=${a}>${store && `${t(store)}: `}<b>${t(`do-${a}`)}</b>: ${t(`say-${a}`)}</li>`))}</ul></details></section>`;
}

export function Sale({room, state}) {
  const [error, fail] = useState('');
  const names = state.strategies.filter((s) => s.available).map((s) => s.name);
  const {sale} = room;
  const start = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target), number = (name) => Number(form.get(name));
    fail('');
    try {
      await post('/lab/sale', {strategies: [form.get('first'), form.get('second')].filter(Boolean), units: number('units'), attempts: number('attempts'), buyers: number('buyers'), wait_s: number('wait')});
    } catch (err) { fail(err.message); }
  };
  const stop = () => post('/lab/sale/stop').catch((err) => fail(err.message));
  const late = () => post('/lab/late').then(() => fail(''), (err) => fail(err.message));
  const select = (name, chosen, more) => html`<label>${t(name)} <select name=${name}>${more}${names.map((n) => html`<option key=${n} value=${n} selected=${n === chosen}>${n}</option>`)}</select></label> `;
  const number = (name, value, max, min = 1) => html`<label>${t(name)} <input name=${name} type="number" min=${min} max=${max} defaultValue=${value} required /></label> `;
  return html`<section class="wide" aria-labelledby="sale-title"><h2 id="sale-title">${t('sale')}</h2>
    ${names.length > 0 && html`<form id="sale" onSubmit=${start}>${select('first', 'naive')}${select('second', 'redis', html`<option value="">${t('none')}</option>`)}
      ${number('units', 1000, 100000)}${number('attempts', 8000, 1000000)}${number('buyers', 32, 256)}${number('wait', 0, 30, 0)}
      <button disabled=${sale?.running}>${t('start')}</button> <button type="button" disabled=${!sale?.running} onClick=${stop}>${t('stop')}</button>
      <button type="button" data-action="late-holder" disabled=${!sale?.running} title=${t('sayLateHolder')} aria-label=${`${t('lateHolder')}: ${t('sayLateHolder')}`} onClick=${late}>${t('lateHolder')}</button></form>`}
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    <div class="lanes">${sale?.lanes.map((l) => html`<${SaleLane} key=${l.sku} lane=${l} units=${sale.order.units} running=${sale.running} />`)}</div>
  </section>`;
}

function SaleLane({lane, units, running}) {
  const books = lane.books;
  const over = Math.max(books?.oversold ?? 0, lane.accepted - units);
  const verdict = over > 0 ? `${t('oversold')} ${over}` : !books ? t('notAudited') : books.error ? books.error : books.broken?.length ? books.broken.join('; ') : running ? t('exactSoFar') : t('exact');
  return html`<article data-strategy=${lane.strategy}><h3>${lane.strategy} <code>${lane.sku}</code></h3>
    <p class=${'verdict ' + (over > 0 || books?.broken?.length ? 'bad' : books && !books.error ? 'good' : '')} role="status">${verdict}</p>
    <dl><div><dt>${t('sold')}</dt><dd data-figure="accepted">${lane.accepted}</dd></div>
      <div><dt>${t('refusedOrders')}</dt><dd data-figure="rejected">${lane.rejected}</dd></div>
      <div><dt>${t('unanswered')}</dt><dd data-figure="failed" title=${lane.failure}>${lane.failed}</dd></div>
      ${books && !books.error && html`<div><dt>${t('left')}</dt><dd data-figure="left">${books.on_hand - books.reserved}</dd></div>
      <div><dt>${t('lostUpdates')}</dt><dd data-figure="lost" class=${books.lost_updates ? 'bad' : ''}>${books.lost_updates}</dd></div>`}</dl>
    ${books && html`<p class="muted">${t('audited', books.at.slice(11, 19))}</p>`}
    <${Chart} samples=${lane.samples} />
  </article>`;
}

const line = {width: 2, points: {show: false}};

// fromZero is the range of an axis.
const fromZero = (_, min, max) => [0, (max || 1) * 1.1];

// Chart draws orders per second and the 99th percentile of their latency.
function Chart({samples}) {
  const place = useRef(), plot = useRef();
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const values = [samples.map((s) => s.at / 1000), samples.map((s) => s.per_second), samples.map((s) => s.p99_ms)];
  useEffect(() => {
    const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = {stroke: color('--muted'), grid: {stroke: color('--line'), width: 1}};
    plot.current = new uPlot({
      width: place.current.clientWidth, height: 160, cursor: {show: false}, legend: {live: false}, scales: {y: {range: fromZero}, ms: {range: fromZero}},
      axes: [{...axis, values: (_, at) => at.map((s) => new Date(s * 1000).toTimeString().slice(3, 8))}, {...axis, size: 60}, {...axis, scale: 'ms', side: 1, grid: {show: false}}],
      series: [{}, {...line, label: t('perSecond'), stroke: color('--bar-0'), fill: `${color('--bar-0')}33`}, {...line, label: t('p99'), scale: 'ms', stroke: color('--bar-3')}],
    }, values, place.current);
    const resized = new ResizeObserver(() => plot.current.setSize({width: place.current.clientWidth, height: 160}));
    resized.observe(place.current);
    return () => { resized.disconnect(); plot.current.destroy(); };
  }, [dark, language()]);
  useEffect(() => { plot.current.setData(values); }, [samples]);
  return html`<div ref=${place} class="chart" role="img" aria-label=${`${t('perSecond')}: ${samples.at(-1)?.per_second ?? 0}, ${t('p99')}: ${samples.at(-1)?.p99_ms ?? 0}`}></div>`;
}
