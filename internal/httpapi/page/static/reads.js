// All that the tabs of a browser read, over at most four connections. A browser opens six to one host, so two are left for what
// buttons send. It runs in a SharedWorker. Where there is none, each tab runs it, and reads while it can be seen.

const patience = 10_000; // milliseconds until a response begins
const silence = 45_000; // milliseconds for which a stream may send nothing: a few of its heartbeats
const recent = 500; // notices that are kept for tabs that come or come back
const behind = 4000; // notices that a tab may have left unread, such as one that is frozen or has crashed

// serve does what a tab asks for. Each request has a port of its own for the response.
export function serve(tab) {
  tab.onmessage = ({data: {path, headers, streamed, lastID}, ports: [port]}) => {
    if (streamed) Stream.of(path, headers).add(port, lastID);
    else read(path, headers, port);
  };
}

const failure = (err) => ({failed: {status: err.status, message: err.message}});

// open returns a response that is a success.
async function open(path, headers, stop) {
  const response = await fetch(path, {headers, signal: stop.signal});
  if (response.ok) return response;
  const problem = await response.json().catch(() => undefined);
  throw Object.assign(new Error(problem?.detail ?? problem?.title ?? `status ${response.status}`), {status: response.status});
}

// inTime returns the result of work, which stop ends after patience.
function inTime(stop, work) {
  const late = setTimeout(() => stop.abort(new Error('no response')), patience);
  return work.finally(() => clearTimeout(late));
}

// Two reads are under way at a time, as an instance that is paused answers none.
let reading = 0;
const queue = [];

async function read(path, headers, port) {
  const stop = new AbortController();
  port.onmessage = () => stop.abort();
  if (reading === 2) await new Promise((next) => queue.push(next));
  else reading++;
  try {
    port.postMessage({body: await inTime(stop, open(path, headers, stop).then((response) => response.json()))});
  } catch (err) { port.postMessage(failure(err)); }
  if (queue.length > 0) queue.shift()();
  else reading--;
}

// Stream is one stream for all tabs that ask for the same with the same credentials.
class Stream {
  static #all = new Map();
  #tabs = new Map(); // ports, with the number of notices that the tab has left unread
  #recent; // notices; the first one is where a tab that has none of them begins
  #begun = false;
  #stop = new AbortController();

  static of(path, headers) {
    const key = JSON.stringify([path, headers]);
    if (!Stream.#all.has(key)) Stream.#all.set(key, new Stream(key, path, headers));
    return Stream.#all.get(key);
  }

  constructor(key, path, headers) {
    Object.assign(this, {key, path, headers});
  }

  // add sends the tab what has come since lastID: the notices, or a reset if they are not known any more.
  add(port, lastID) {
    this.#tabs.set(port, 0);
    port.onmessage = ({data}) => data === 'read' ? this.#tabs.set(port, this.#tabs.get(port) - 1) : this.#remove(port);
    if (!this.#recent) {
      this.#recent = [{event: 'reset', id: lastID}];
      this.#run(lastID);
      return;
    }
    if (this.#begun) this.#send(port, {}); // the tab is connected
    const at = this.#recent.findLastIndex((n) => n.id === lastID);
    if (at < 0) this.#send(port, {...this.#recent[0], id: this.#recent.at(-1).id});
    else this.#recent.slice(at + 1).forEach((n) => this.#send(port, n));
  }

  async #run(lastID) {
    let last = {ended: true};
    try {
      for await (const notice of notices(this.path, {...this.headers, ...(lastID && {'Last-Event-ID': lastID})}, this.#stop)) this.#take(notice);
    } catch (err) { last = failure(err); }
    this.#end();
    for (const port of this.#tabs.keys()) port.postMessage(last);
  }

  #take(notice) {
    this.#begun = true;
    if (notice.event === 'reset' || notice.event === 'state') this.#recent = [notice]; // it contains all that came before
    else if (notice.id) this.#recent.push(notice);
    if (this.#recent.length > recent) this.#recent.splice(0, 2, {event: 'reset', id: this.#recent[1].id});
    for (const port of this.#tabs.keys()) this.#send(port, notice);
  }

  #send(port, notice) {
    const unread = this.#tabs.get(port) + 1;
    this.#tabs.set(port, unread);
    port.postMessage(unread > behind ? {ended: true} : {notice});
    if (unread > behind) this.#remove(port);
  }

  #remove(port) {
    this.#tabs.delete(port);
    port.onmessage = null;
    port.close();
    if (this.#tabs.size > 0) return;
    this.#end();
    this.#stop.abort();
  }

  // #end makes room for another stream, which a tab gets that asks again.
  #end() {
    if (Stream.#all.get(this.key) === this) Stream.#all.delete(this.key);
  }
}

// notices yields what a stream of events sends, each with its name, id and data, until the connection ends. An EventSource cannot send an
// API key, so this reads the text of the stream itself.
async function* notices(path, headers, stop) {
  const reader = (await inTime(stop, open(path, headers, stop))).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const silent = setTimeout(() => reader.cancel(), silence);
    const {done, value} = await reader.read().finally(() => clearTimeout(silent));
    if (done) return;
    text += value;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const notice = parse(text.slice(0, end));
      text = text.slice(end + 2);
      yield notice;
    }
  }
}

function parse(block) {
  const notice = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) notice[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (notice.data) notice.data = JSON.parse(notice.data);
  return notice;
}

if (globalThis.SharedWorkerGlobalScope) globalThis.onconnect = ({ports: [tab]}) => serve(tab);
