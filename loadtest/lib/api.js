// The requests of a sale, each under one name, so that ids in a URL make no new time series.
import http from 'k6/http';
import { sleep } from 'k6';

// Sold out is an answer, not a failure. The setting holds for setup and teardown too.
http.setResponseCallback(http.expectedStatuses({ min: 200, max: 299 }, 409));

// Longer than an instance takes to give up: a request without an answer is an error of the
// instance, not of the buyer's patience.
const timeout = '30s';

function params(name) {
  return { headers: { 'Content-Type': 'application/json' }, tags: { name }, timeout };
}

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

function unit(customer, sku) {
  return JSON.stringify({ customer_id: customer, items: [{ sku, quantity: 1 }] });
}

export function placeOrder(url, customer, sku) {
  return http.post(`${url}/api/v1/orders`, unit(customer, sku), params('POST /api/v1/orders'));
}

export function order(url, id) {
  return http.get(`${url}/api/v1/orders/${id}`, params('GET /api/v1/orders/{id}'));
}

export function pay(url, id, payment) {
  return http.post(`${url}/api/v1/orders/${id}/pay`, JSON.stringify({ payment_id: payment }), params('POST /api/v1/orders/{id}/pay'));
}

// insist makes a request again while the service is too busy, which means that nothing has
// happened.
export function insist(request) {
  for (let tries = 0; ; tries++) {
    const r = request();
    if (r.status !== 503 || tries === 30) return r;
    sleep(0.1);
  }
}

// batch makes one request for each SKU, at every instance in turn and several at a time, and
// returns the answers. All must succeed.
function batch(urls, skus, request) {
  let left = skus.map((sku, i) => ({ sku, request: request(urls[i % urls.length], sku, i) }));
  const answers = {};
  for (let tries = 0; left.length > 0 && tries < 30; tries++) {
    http.batch(left.map((l) => l.request)).forEach((r, i) => {
      if (r.status >= 200 && r.status <= 299) answers[left[i].sku] = r.json();
      else if (r.status !== 503) throw new Error(`${r.request.method} ${r.url}: ${r.status || r.error} ${r.body || ''}`);
    });
    left = left.filter((l) => !(l.sku in answers));
  }
  if (left.length > 0) throw new Error(`${left.length} requests found the service too busy`);
  return skus.map((sku) => answers[sku]);
}

// createSKUs creates many SKUs at once.
export function createSKUs(urls, skus, onHand, strategy) {
  const body = JSON.stringify({ on_hand: onHand, strategy });
  return batch(urls, skus, (url, sku) => ['PUT', `${url}/api/v1/skus/${sku}`, body, params('PUT /api/v1/skus/{sku}')]);
}

// placeOrders places an order of each SKU, by a customer of its own.
export function placeOrders(urls, skus) {
  return batch(urls, skus, (url, sku, i) => ['POST', `${url}/api/v1/orders`, unit(`first-${i}`, sku), params('POST /api/v1/orders')]);
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

// instance returns who answered.
export function instance(response) {
  return response.headers['X-Instance-Id'] || '';
}
