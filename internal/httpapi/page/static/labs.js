// The labs: one question each, answered by a run on processes and servers of its own.

import {html, useEffect, useState} from './vendor/htm-preact.js';
import {get, post} from './api.js';
import {language, t} from './text.js';
import {Walk} from './walk.js';

export function Labs({run}) {
  const [labs, setLabs] = useState([]);
  const [name, choose] = useState('');
  const [error, fail] = useState('');
  useEffect(() => { get('/lab/labs').then(setLabs, (err) => fail(err.message)); }, []);
  const lab = labs.find((l) => l.name === (name || run?.name));
  const words = (l) => language() === 'zh' ? l.zh : l;
  const said = run && {...run, ...words(run)};
  const start = () => { fail(''); post(`/lab/labs/${lab.name}`).catch((err) => fail(err.message)); };
  return html`<section class="wide" id="labs" aria-labelledby="labs-title"><h2 id="labs-title">${t('labs')}</h2>
    <p><label>${t('chooseLab')} <select value=${lab?.name ?? ''} onChange=${(e) => choose(e.target.value)}>
      <option value=""></option>${labs.map((l) => html`<option key=${l.name} value=${l.name}>${l.number}. ${words(l).title}</option>`)}</select></label>
      ${' '}<button data-action="lab" disabled=${!lab || run?.running} aria-label=${lab ? t('runLab', words(lab).title) : t('run')} onClick=${start}>${t('run')}</button></p>
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    ${lab && html`<p class="question"><b>${words(lab).question}</b></p><p class="expect">${t('expect')}: ${words(lab).expect}</p>
      <p class="muted">${t('byCommand')}: <code>go run ./cmd/shop lab run ${lab.name}</code></p>`}
    ${lab && run?.name === lab.name && html`<${Walk} key=${lab.name} run=${said}><${Verdict} lab=${lab} words=${words(lab)} result=${said.result} /><//>`}
  </section>`;
}

// Verdict is what the run found, and why.
function Verdict({lab, words, result}) {
  const finding = (kind) => (f) => html`<li key=${f.text} class=${f.ok ? '' : 'bad'}>${f.ok ? '✓' : '✕'} ${t(kind)}: ${f.text}</li>`;
  return html`<p class=${`verdict ${result.verdict === 'shown' ? 'good' : 'bad'}`} role="status" data-verdict=${result.verdict}>${t(result.verdict)}${result.reason ? `: ${result.reason}` : ''}</p>
    <ul class="findings">${(result.effects ?? []).map(finding('effect'))}${(result.cures ?? []).map(finding('cure'))}</ul>
    <h3>${t('why')}</h3><p class="why">${words.why}</p><h3>${t('cure')}</h3><p class="why">${words.cure}</p>
    <h3>${t('inTheCode')}</h3><ul lang="en">${lab.links.map((l) => html`<li key=${l.path}>${l.text}: <code>${l.path}</code></li>`)}</ul>
    <h3>${t('read')}</h3><ul>${words.read.map((r) => html`<li key=${r.key}><a href=${r.address}>${r.author}: ${r.title}</a>, ${r.year}. ${r.claim}</li>`)}</ul>
    <h3>${t('exercises')}</h3><ol>${words.exercises.map((e) => html`<li key=${e.text}>(${e.level}, ${t('minutes', e.minutes)}, <code>${e.begin}</code>) ${e.text}</li>`)}</ol>`;
}
