// The requests of a sale, each under one name, so that ids in a URL make no new time series.
import http from 'k6/http';

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

export function placeOrder(url, customer, sku) {
  const order = { customer_id: customer, items: [{ sku, quantity: 1 }] };
  return http.post(`${url}/api/v1/orders`, JSON.stringify(order), params('POST /api/v1/orders'));
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
