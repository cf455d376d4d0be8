// The control room.

import {html, render, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState} from './vendor/htm-preact.js';
import {apiKey, roomToken, setAPIKey, sharing} from './api.js';
import {Lane} from './lane.js';
import {Labs} from './labs.js';
import {Records} from './records.js';
import {before, Instances, leased, Load, Sale, useRoom} from './room.js';
import {State} from './state.js';
import {Story} from './story.js';
import {language, setLanguage, t} from './text.js';
import {twice} from './tickets.js';

const minute = 60_000, lag = 500; // milliseconds; events arrive a moment later

function Room() {
  const [, redraw] = useReducer((n) => n + 1, 0);
  const [paused, pause] = useState(false);
  const [hidden, hide] = useState(document.hidden);
  const idle = paused || hidden && !sharing(); // a browser has few connections for all of its tabs
  const [session, restart] = useReducer((n) => n + 1, 0);
  const [chosen, choose] = useState('');
  const [replay, play] = useState(); // the moment that is shown, and since when it moves on
  const now = useRef(); // for what counts down
  if (!paused) now.current = Date.now();
  const {now: live, lost, history} = useRoom(roomToken !== '' && !idle);
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
    const refresh = setInterval(() => s.refresh(stop.signal), 5000);
    return () => { stop.abort(); clearInterval(refresh); };
  }, [s, idle]);
  useEffect(() => {
    if (idle) return undefined;
    const clock = setInterval(redraw, replay ? 100 : 1000);
    return () => clearInterval(clock);
  }, [idle, !replay]);
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
  const lanes = live?.sale?.lanes, of = lanes?.find((l) => leased(l.strategy)) ?? lanes?.[0];
  useEffect(() => { choose(''); play(); }, [of?.sku]);
  const moment = (clock) => replay.at + (replay.since ? clock - replay.since : 0);
  const end = Math.min(now.current, live?.sale?.ended ?? Infinity), at = replay ? moment(now.current) : now.current;
  useEffect(() => { if (replay && at >= end) play(); }, [replay, at >= end]);
  const room = replay ? before(history, live, at) : live;
  const sku = chosen || of?.sku || ([...s.leases.values()].at(-1)?.sku ?? [...s.skus.keys()].sort()[0] ?? '');
  const sold = room?.sale?.lanes.find((l) => l.sku === sku), over = sold && twice(sold.accepted, room.sale.order.units);
  const clock = () => replay ? moment(Date.now()) : Math.min(Date.now() - lag, lanes?.some((l) => l.sku === sku) && live.sale.ended || Infinity);
  const names = room?.instances.map((i) => i.name) ?? [...s.members.keys()];
  const places = [room && ['tickets', 'sale'], ['lane', 'lane'], ['instances', 'instances'], ['records', 'records'], room && ['labs', 'labs']].filter(Boolean);
  return html`
    <header><h1>${t('title')}</h1>
      <span id="connection" role="status" class=${paused ? 'lost' : s.connection}>${t(paused ? 'paused' : s.connection)}</span>
      ${paused && html`<span id="paused" class="warn">${t('pausedPage')}</span>`}
      ${!paused && s.connection === 'lost' && html`<span id="lost" class="warn">${t('lostPage')}</span>`}
      ${s.resets > 1 && html`<span id="reloads" class="muted">${t('reloaded', s.resets - 1)}</span>`}
      <button onClick=${() => pause(!paused)} aria-pressed=${paused}>${paused ? t('resume') : t('pause')}</button>
      <button onClick=${() => { setLanguage(language() === 'en' ? 'zh' : 'en'); redraw(); }} lang=${language() === 'en' ? 'zh' : 'en'}>${language() === 'en' ? '中文' : 'English'}</button>
      <nav aria-label=${t('sections')}>${places.map(([id, name]) => html`<button key=${id} class="link" onClick=${() => document.getElementById(id).scrollIntoView()}>${t(name)}</button>`)}<a href="/docs">API</a></nav></header>
    ${s.connection === 'refused' && html`<${Key} why=${s.error} again=${restart} />`}
    <main>
      <p class="wide about">${t(roomToken ? 'aboutRoom' : 'aboutInstance')}</p>
      ${lost && html`<p id="lost-room" class="wide bad" role="alert">${lost}</p>`}
      ${room && html`<${Sale} room=${room} live=${live} state=${s}><${Replay} history=${history} end=${end} at=${at} replay=${replay} play=${play} disabled=${paused} /><//>`}
      <${Lane} state=${s} sku=${sku} paused=${paused} clock=${clock} names=${names} over=${over} />
      ${room ? html`<${Instances} room=${room} state=${s} inert=${!!replay} />` : html`<${Members} state=${s} />`}
      ${room && html`<${Story} state=${s} room=${room} now=${at} />`}
      <${Records} state=${s} room=${live} now=${now.current} sku=${sku} choose=${choose} />
      ${room && html`<${Labs} run=${room.lab} />`}
    </main>`;
}

// Replay chooses the moment that the page shows, of the last minute or of the last minute of the sale that has ended.
function Replay({history, end, at, replay, play, disabled}) {
  const from = Math.max(end - minute, history[0]?.at ?? end), ago = Math.max(0, (end - at) / 1000);
  if (end - from < 1000) return null;
  return html`<p id="replay"><button disabled=${disabled} onClick=${() => replay ? play() : play({at: from, since: Date.now()})}>${t(replay ? 'toLive' : 'replay')}</button>
    ${replay && html`<button disabled=${disabled} aria-pressed=${!replay.since} onClick=${() => play({at, since: replay.since ? undefined : Date.now()})}>${t('hold')}</button>`}
    <input type="range" disabled=${disabled} aria-label=${t('moment')} aria-valuetext=${t('ago', ago.toFixed(1))} min=${from} max=${end} value=${replay ? at : end} onInput=${(e) => play({at: Number(e.target.value)})} />
    <output>${replay ? t('ago', ago.toFixed(1)) : ''}</output></p>`;
}

function Key({why, again}) {
  const submit = (event) => { event.preventDefault(); setAPIKey(new FormData(event.target).get('key').trim()); again(); };
  return html`<form class="key" aria-label=${t('key')} onSubmit=${submit}><label>${t('key')} <input name="key" type="password" autocomplete="off" defaultValue=${apiKey()} required /></label>
    <button>${t('open')}</button> <span class="warn">${why}</span></form>`;
}

// Members lists the instances as the cluster knows them: without a room, that is all that is known.
function Members({state}) {
  const {load} = state.cluster;
  return html`<section class="instances" id="instances" aria-labelledby="instances-title"><h2 id="instances-title">${t('instances')}</h2>
    <ul class="rows">${[...state.members.values()].map((m) => html`<li key=${m.name}><div><b>${m.name}</b>
      ${m.name === state.leader && html` <span class="badge">${t('leader')}</span>`}</div><div class="muted">${m.address}</div>
      ${load?.instance === m.name && html`<div id="load"><${Load} load=${load} /></div>`}</li>`)}</ul>
    ${state.cluster.stale && html`<p class="warn">${state.cluster.stale}</p>`}
  </section>`;
}

render(html`<${Room} />`, document.getElementById('room'));
