// The labs: one question each, answered by a run on processes and servers of its own.

import {html, useEffect, useState} from './vendor/htm-preact.js';
import {get, post} from './api.js';
import {t} from './text.js';

export function Labs({run}) {
  const [labs, setLabs] = useState([]);
  const [name, choose] = useState('');
  const [error, fail] = useState('');
  useEffect(() => { get('/lab/labs').then(setLabs, (err) => fail(err.message)); }, []);
  const lab = labs.find((l) => l.name === (name || run?.name));
  const start = () => { fail(''); post(`/lab/labs/${lab.name}`).catch((err) => fail(err.message)); };
  return html`<section class="wide" id="labs" aria-labelledby="labs-title"><h2 id="labs-title">${t('labs')}</h2>
    <p><label>${t('chooseLab')} <select value=${lab?.name ?? ''} onChange=${(e) => choose(e.target.value)}>
      <option value=""></option>${labs.map((l) => html`<option key=${l.name} value=${l.name}>${l.number}. ${l.title}</option>`)}</select></label>
      ${' '}<button data-action="lab" disabled=${!lab || run?.running} aria-label=${lab ? t('runLab', lab.title) : t('run')} onClick=${start}>${t('run')}</button></p>
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    ${lab && html`<p><b>${lab.question}</b></p><p>${t('expect')}: ${lab.expect}</p>`}
    ${lab && run?.name === lab.name && html`<${Outcome} lab=${lab} run=${run} />`}
  </section>`;
}

function Outcome({lab, run}) {
  const {result} = run;
  const finding = (kind) => (f) => html`<li key=${f.text} class=${f.ok ? '' : 'bad'}>${f.ok ? '✓' : '✕'} ${kind}: ${f.text}</li>`;
  return html`<ol class="steps" aria-live="polite">${run.steps.map((s) => html`<li key=${s.at_ms + s.text}><time>${s.at_ms.toFixed(0)} ms</time> ${s.text}</li>`)}</ol>
    ${run.running && html`<p class="muted" role="status">${t('runningLab')} …</p>`}
    ${run.svg && html`<div class="picture" dangerouslySetInnerHTML=${{__html: run.svg}}></div>`}
    ${result && html`<p class=${`verdict ${result.verdict === 'shown' ? 'good' : 'bad'}`} role="status" data-verdict=${result.verdict}>${t(result.verdict)}${result.reason ? `: ${result.reason}` : ''}</p>
      <ul class="findings">${(result.effects ?? []).map(finding('effect'))}${(result.cures ?? []).map(finding('cure'))}</ul>
      <h3>${t('why')}</h3><p>${lab.why}</p><h3>${t('cure')}</h3><p>${lab.cure}</p>
      <h3>${t('exercises')}</h3><ol>${lab.exercises.map((e) => html`<li key=${e}>${e}</li>`)}</ol>`}`;
}
