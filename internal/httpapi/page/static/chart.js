// A chart of one figure of a lane.

import {html, useEffect, useRef} from './vendor/htm-preact.js';
import {language} from './text.js';
import uPlot from './vendor/uplot.js';

const height = 130, seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300];

// fromZero is the range of an axis.
const fromZero = (_, min, max) => [0, (max || 1) * 1.1];

// wide is the width of an axis: that of its longest number.
export const wide = (_, values) => 14 + 7.5 * Math.max(1, ...(values ?? []).map((v) => v.length));

export function Chart({name, tone, times, values}) {
  const place = useRef(), plot = useRef();
  const dark = matchMedia('(prefers-color-scheme: dark)').matches, latest = values.at(-1) ?? 0;
  useEffect(() => {
    const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = {stroke: color('--muted'), grid: {stroke: color('--line'), width: 1}, ticks: {show: false}};
    plot.current = new uPlot({
      width: place.current.clientWidth, height, cursor: {show: false}, legend: {show: false}, scales: {y: {range: fromZero}},
      axes: [{...axis, incrs: seconds, size: 26, space: 75, values: (_, at) => at.map((s) => new Date(s * 1000).toTimeString().slice(0, 8))}, {...axis, size: wide}],
      series: [{}, {width: 2, points: {show: false}, stroke: color(tone), fill: `${color(tone)}33`}],
    }, [times, values], place.current);
    const resized = new ResizeObserver(() => plot.current.setSize({width: place.current.clientWidth, height}));
    resized.observe(place.current);
    return () => { resized.disconnect(); plot.current.destroy(); };
  }, [dark, language()]);
  useEffect(() => { plot.current.setData([times, values]); }, [times.at(-1), times.length]);
  return html`<figure><figcaption>${name} <b>${Math.round(latest)}</b></figcaption>
    <div ref=${place} class="chart" role="img" aria-label=${`${name}: ${latest}`}></div></figure>`;
}
