// The steps of a lab's run: live while it runs, and one by one with the buttons or the arrow keys.

import {html, useEffect, useLayoutEffect, useRef, useState} from './vendor/htm-preact.js';
import {t} from './text.js';

const end = Infinity; // the latest step of a run that continues, or the verdict

// Walk shows a run up to one position: 0 is the question, then each step, and then the verdict, which is what Walk contains.
export function Walk({run, children}) {
  const [at, go] = useState(end);
  const picture = useRef(), keys = useRef();
  const steps = run.steps, last = steps.length + (run.running ? 0 : 1), here = Math.min(at, last), whole = here > steps.length;
  const walk = (to) => go(to >= last ? end : Math.max(0, to));
  keys.current = {ArrowLeft: () => walk(here - 1), ArrowRight: () => walk(here + 1)};
  useEffect(() => { if (run.running) go(end); }, [run.running]);
  useEffect(() => {
    const press = (event) => {
      const elsewhere = event.target !== document.body && !event.target.closest('#labs') || event.target.matches('select, input');
      if (elsewhere || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !keys.current[event.key]) return;
      event.preventDefault();
      keys.current[event.key]();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
  useLayoutEffect(() => { if (picture.current) reveal(picture.current, whole ? end : here === 0 ? -end : steps[here - 1].at_ms); }, [run.svg, here, whole]);
  // A button that ends where it leads to keeps the focus, so it is not disabled.
  const button = (name, to, ended, key) => html`<button data-walk=${name} aria-disabled=${ended} aria-keyshortcuts=${key} onClick=${() => ended || walk(to)}>${t(name)}</button>`;
  const current = (position) => position === here && !(run.running && at === end) ? 'step' : undefined;
  return html`<div class="walk" role="group" aria-label=${t('walk')}>
      ${button('fromStart', 0, here === 0)} ${button('previous', here - 1, here === 0, 'ArrowLeft')} ${button('next', here + 1, here === last, 'ArrowRight')}
      <span role="status" data-position=${here}>${here === 0 ? t('question') : whole ? t('verdict') : `${t('stepOf', here, steps.length)}: ${steps[here - 1].text}`}</span></div>
    <ol class="steps">${steps.map((s, i) => html`<li key=${i} class=${i < here ? '' : 'later'} aria-current=${current(i + 1)}><time>${s.at_ms.toFixed(0)} ms</time> ${s.text}</li>`)}</ol>
    ${run.running && html`<p class="muted" role="status">${t('runningLab')} …</p>`}
    ${run.svg && html`<div ref=${picture} class="picture" tabindex="0" role="region" aria-label=${t('picture')} dangerouslySetInnerHTML=${{__html: run.svg}}></div>`}
    ${run.result && whole && children}`;
}

// reveal shows what a picture has up to a moment of the run, in milliseconds, with a cursor at that moment in each row that was under way.
function reveal(picture, at) {
  picture.hidden = at !== end && !picture.querySelector('[data-from]'); // bars are measured at the end
  for (const part of picture.querySelectorAll('[data-from]')) {
    const from = Number(part.dataset.from), until = Number(part.dataset.until ?? from), share = at >= until ? 1 : (at - from) / (until - from);
    const cursor = Number(part.dataset.cursor);
    part.setAttribute('visibility', at < from || cursor && at > until ? 'hidden' : 'visible');
    if (cursor) part.setAttribute('transform', `translate(${cursor * Math.min(1, Math.max(0, share))})`);
    else if (part.dataset.until) grow(part, Math.max(0, share));
  }
}

// grow shows a share of a span, and its label once it is complete.
function grow(span, share) {
  const bar = span.querySelector('rect'), label = span.querySelector('text');
  bar.dataset.width ??= bar.getAttribute('width');
  bar.setAttribute('width', bar.dataset.width * share);
  if (label) label.setAttribute('visibility', share < 1 ? 'hidden' : 'inherit');
}
