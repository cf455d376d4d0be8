// The requests, each under one name, so that ids in a URL make no new time series.
import http from 'k6/http';
import { sleep } from 'k6';
import { apiKey } from './env.js';

// Sold out and busy are answers, not failures. The setting holds for setup and teardown too.
http.setResponseCallback(http.expectedStatuses({ min: 200, max: 299 }, 409, 429, 503));

// Longer than an instance takes to give up: a request without an answer is an error of the
// instance, not of the buyer's patience.
const timeout = '60s';

export function params(name, headers = {}) {
  const auth = apiKey === '' ? {} : { Authorization: `Bearer ${apiKey}` };
  return { headers: { 'Content-Type': 'application/json', ...auth, ...headers }, tags: { name }, timeout };
}

// once makes a request one that can be repeated.
export const once = (key) => ({ 'Idempotency-Key': `"${key}"` });

export function ready(url) {
  return http.get(`${url}/readyz`, params('GET /readyz'));
}

export function createSKU(url, sku, onHand, strategy) {
  return http.put(`${url}/api/v1/skus/${sku}`, JSON.stringify({ on_hand: onHand, strategy }), params('PUT /api/v1/skus/{sku}'));
}

// level answers with the units of one SKU.
export function level(url, sku) {
  return http.get(`${url}/api/v1/skus/${sku}`, params('GET /api/v1/skus/{sku}'));
}

// unit is one unit of a SKU, as the items of an order.
export const unit = (sku) => [{ sku, quantity: 1 }];

const purchase = (customer, items) => JSON.stringify({ customer_id: customer, items });

export function placeOrder(url, customer, items, headers = {}) {
  return http.post(`${url}/api/v1/orders`, purchase(customer, items), params('POST /api/v1/orders', headers));
}

export function order(url, id) {
  return http.get(`${url}/api/v1/orders/${id}`, params('GET /api/v1/orders/{id}'));
}

export function pay(url, id, payment) {
  return http.post(`${url}/api/v1/orders/${id}/pay`, JSON.stringify({ payment_id: payment }), params('POST /api/v1/orders/{id}/pay'));
}

export function cancel(url, id) {
  return http.post(`${url}/api/v1/orders/${id}/cancel`, null, params('POST /api/v1/orders/{id}/cancel'));
}

// busy tells that the service asks to come back later. Except for an unknown outcome, nothing
// has happened; and that is safe to repeat with a key.
export const busy = (r) => r.status === 429 || r.status === 503;

// pause is what customers do before they come back: each does at another time.
export function pause() {
  sleep(0.1 + 0.2 * Math.random());
}

const patience = 180; // seconds that customers ask a busy service

// ask makes a request again while the service is busy. Orders need a key for that.
export function ask(request, answered = () => {}) {
  for (const end = Date.now() + 1000 * patience; ; pause()) {
    const r = request();
    answered(r);
    if (!busy(r) || Date.now() > end) return r;
  }
}

// batch makes one request for each SKU, at every instance in turn and several at a time, and
// returns the answers. All must succeed.
export function batch(urls, skus, request) {
  let left = skus.map((sku, i) => ({ sku, request: request(urls[i % urls.length], sku, i) }));
  const answers = {};
  for (let tries = 0; left.length > 0 && tries < 100; tries++) {
    if (tries > 0) pause();
    http.batch(left.map((l) => l.request)).forEach((r, i) => {
      if (r.status >= 200 && r.status <= 299) answers[left[i].sku] = r.json();
      else if (!busy(r)) throw new Error(`${r.request.method} ${r.url}: ${r.status || r.error} ${r.body || ''}`);
    });
    left = left.filter((l) => !(l.sku in answers));
  }
  if (left.length > 0) throw new Error(`${left.length} requests found the service too busy`);
  return skus.map((sku) => answers[sku]);
}

// createSKUs creates many SKUs at once; values says more about one than its units and strategy.
export function createSKUs(urls, skus, onHand, strategy, values = () => ({})) {
  return batch(urls, skus, (url, sku, i) =>
    ['PUT', `${url}/api/v1/skus/${sku}`, JSON.stringify({ on_hand: onHand, strategy, ...values(i) }), params('PUT /api/v1/skus/{sku}')]);
}

// placeOrders places an order of one unit of each SKU, or of one SKU many times, by a customer
// of its own.
export function placeOrders(urls, skus, run) {
  const names = skus.map((_, i) => `${run}-first-${i}`);
  return batch(urls, names, (url, name, i) =>
    ['POST', `${url}/api/v1/orders`, purchase(name, unit(skus[i])), params('POST /api/v1/orders', once(name))]);
}

// audits returns the books of many SKUs.
export function audits(urls, skus) {
  return batch(urls, skus, (url, sku) => ['GET', `${url}/api/v1/audit?sku=${sku}`, null, params('GET /api/v1/audit')]).map((books) => books.skus[0]);
}

// audit returns the books of one SKU, or null if they could not be read.
export function audit(url, sku) {
  const r = http.get(`${url}/api/v1/audit?sku=${sku}`, params('GET /api/v1/audit'));
  if (r.status !== 200) return null;
  return r.json().skus.find((s) => s.sku === sku) || null;
}

// ordersOf returns all orders of a SKU.
export function ordersOf(url, sku) {
  const all = [];
  for (let cursor = ''; ;) {
    const r = ask(() => http.get(`${url}/api/v1/orders?sku=${sku}&limit=100${cursor}`, params('GET /api/v1/orders')));
    if (r.status !== 200) throw new Error(`GET ${r.url}: ${r.status || r.error} ${r.body || ''}`);
    const page = r.json();
    all.push(...page.orders);
    if (!page.next) return all;
    cursor = `&cursor=${page.next}`;
  }
}

// movements returns the movements of units of many orders, of each in one list.
export function movements(urls, ids) {
  return batch(urls, ids, (url, id) => ['GET', `${url}/api/v1/orders/${id}/movements`, null, params('GET /api/v1/orders/{id}/movements')]).map((r) => r.movements);
}

// instance returns who answered.
export function instance(response) {
  return response.headers['X-Instance-Id'] || '';
}

// newRun returns a name that no other run has.
export function newRun() {
  return `k6-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
}

// gone tells whether nothing listens at an address any more.
export function gone(url) {
  try {
    return http.get(`${url}/livez`, { ...params('GET /livez'), timeout: '5s', responseCallback: null }).status === 0;
  } catch (e) {
    return true;
  }
}
