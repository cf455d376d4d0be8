// The API of the service, as the page uses it.

const keyName = 'shop-api-key';

export const apiKey = () => sessionStorage.getItem(keyName) ?? '';
export const setAPIKey = (key) => sessionStorage.setItem(keyName, key);

// roomToken is in the address that shop lab prints. Without one, the page can do nothing but look.
export const roomToken = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';

const headers = (more) => ({...(apiKey() && {Authorization: `Bearer ${apiKey()}`}), ...(roomToken && {'Shop-Room-Token': roomToken}), ...more});

// Refused is a response that is not a success.
export class Refused extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? problem?.title ?? `status ${status}`);
    this.status = status;
  }
}

// get returns the body of a response.
export async function get(path, signal) {
  const response = await fetch(path, {headers: headers(), signal});
  const body = await response.json().catch(() => undefined);
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

// post sends a body as JSON, or nothing, and returns the body of the response.
export async function post(path, body) {
  const response = await fetch(path, {method: 'POST', headers: headers(body && {'Content-Type': 'application/json'}), body: body && JSON.stringify(body)});
  const answer = await response.json().catch(() => undefined);
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

// silence is how many milliseconds a stream may send nothing: a few of its heartbeats. After that, the connection is lost.
const silence = 45_000;

// stream yields what a stream of events sends, each with its name, id and data, until the connection ends. An
// EventSource cannot send an API key, so this reads the text of the stream itself.
export async function* stream(path, lastID, signal) {
  const response = await fetch(path, {headers: headers(lastID && {'Last-Event-ID': lastID}), signal});
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => undefined));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
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
