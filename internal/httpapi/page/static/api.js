// The API of the service, as the page uses it.

import {serve} from './reads.js';
import {t} from './text.js';

const keyName = 'shop-api-key';

export const apiKey = () => sessionStorage.getItem(keyName) ?? '';
export const setAPIKey = (key) => sessionStorage.setItem(keyName, key);

// roomToken is in the address that shop lab prints. Without one, the page can do nothing but look.
export const roomToken = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';

const headers = (path, more) => ({...(apiKey() && {Authorization: `Bearer ${apiKey()}`}), ...(roomToken && path.startsWith('/lab/') && {'Shop-Room-Token': roomToken}), ...more});

// Refused is a response that is not a success, or none if it has no status.
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const limit = 5000; // milliseconds for what a button sends

// post sends a body as JSON, or nothing, and returns the body of the response. What was not sent within the limit is not sent later.
export async function post(path, body) {
  const signal = AbortSignal.timeout(limit);
  try {
    const response = await fetch(path, {method: 'POST', headers: headers(path, body && {'Content-Type': 'application/json'}), body: body && JSON.stringify(body), signal});
    const answer = await response.json().catch(() => signal.throwIfAborted());
    if (!response.ok) throw new Refused(response.status, answer?.detail ?? answer?.title ?? `status ${response.status}`);
    return answer;
  } catch (err) {
    throw err instanceof Refused ? err : new Refused(undefined, signal.aborted ? t('noResponseIn', limit / 1000) : t('noConnection'));
  }
}

let shared, own; // ports to what reads for all tabs, or for this one

// sharing reports whether all tabs of the browser share what they read.
export const sharing = () => globalThis.SharedWorker !== undefined && shared !== null;

// reader returns the port to what reads.
function reader() {
  if (!sharing()) {
    if (own) return own;
    const {port1, port2} = new MessageChannel();
    serve(port2);
    return own = port1;
  }
  if (shared) return shared;
  const worker = new SharedWorker('/room/reads.js', {type: 'module'});
  worker.onerror = () => { shared = null; lose(); };
  worker.port.start();
  return shared = worker.port;
}

const asked = new Set(); // ports of responses that are not complete

// lose ends all that is asked. A page that is left must not count as one that reads.
function lose() {
  for (const port of asked) port.onmessage({data: failed});
}

const failed = {failed: {message: 'the connection has ended'}};

addEventListener('pagehide', lose);

// responses yields what the reader sends, until signal is aborted. It throws a Refused if that fails.
async function* responses(request, signal) {
  signal?.throwIfAborted();
  const {port1: port, port2} = new MessageChannel(), inbox = [];
  let wake = () => {};
  port.onmessage = ({data}) => {
    inbox.push(data);
    if (data === failed) port.postMessage('stop');
    wake();
  };
  const stop = () => port.onmessage({data: failed});
  signal?.addEventListener('abort', stop);
  asked.add(port);
  try {
    reader().postMessage({...request, headers: headers(request.path)}, [port2]);
    for (;;) {
      while (inbox.length === 0) await new Promise((next) => { wake = next; });
      const message = inbox.shift();
      if (message.failed) throw new Refused(message.failed.status, message.failed.message);
      if (message.ended) return;
      yield message;
      port.postMessage('read');
    }
  } finally {
    signal?.removeEventListener('abort', stop);
    asked.delete(port);
    port.postMessage('stop');
    port.close();
  }
}

// get returns the body of a response.
export async function get(path, signal) {
  for await (const {body} of responses({path}, signal)) return body;
  return undefined;
}

// stream yields what a stream of events has sent since lastID, each with its name, id and data, until the connection ends.
export async function* stream(path, lastID, signal) {
  for await (const {notice} of responses({path, streamed: true, lastID}, signal)) yield notice;
}
