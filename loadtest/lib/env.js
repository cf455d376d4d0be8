// What a run is told by its environment. No variable is called K6_VUS or K6_ITERATIONS:
// k6 reads those itself and then drops the scenarios of the script.

function whole(name, fallback, least = 1) {
  const text = __ENV[name] || String(fallback);
  const n = Number(text);
  if (!Number.isInteger(n) || n < least) throw new Error(`${name}=${text}: want a whole number of at least ${least}`);
  return n;
}

function list(name, fallback) {
  const items = (__ENV[name] || fallback).split(',').map((s) => s.trim()).filter((s) => s !== '');
  if (items.length === 0) throw new Error(`${name} names nothing`);
  return items;
}

// One address for a balancer, or one per instance, which the buyers then take in turn.
export const urls = list('BASE_URLS', __ENV.BASE_URL || 'http://127.0.0.1:8080').map((u) => u.replace(/\/+$/, ''));

// Those of them that are still there once the unpaid orders are placed.
export const survivors = list('SURVIVORS', urls.join(',')).map((u) => u.replace(/\/+$/, ''));

// Orders of expiry.js.
export const unpaid = whole('UNPAID', 100);

export const stock = whole('STOCK', 100);
export const attempts = whole('ATTEMPTS', 800);
export const buyers = whole('BUYERS', 32);
export const maxDuration = __ENV.MAX_DURATION || '2m';

// Fewer instances than this, and the sale says nothing about a distributed system.
export const minInstances = whole('MIN_INSTANCES', 2);

// Where the reports go; an empty name writes none.
export const out = __ENV.OUT === undefined ? 'out' : __ENV.OUT;

// What an exact arm sells: every unit that somebody wants, and none twice.
export const exactly = Math.min(stock, attempts);

// EXPECT=exact judges the controls as if they were safe: a run that must end red, and so
// shows that the judge can tell.
const expect = __ENV.EXPECT || 'auto';
if (expect !== 'auto' && expect !== 'exact') throw new Error(`EXPECT=${expect}: want auto or exact`);

// A mutex in one process is a control only when there is a second process.
const controls = minInstances > 1 ? ['naive', 'local'] : ['naive'];

// One arm per strategy: the same sale of the same stock, of a SKU that this strategy guards.
export const arms = [...new Set(list('STRATEGIES', 'naive,redis'))].map((strategy) => ({
  strategy,
  expected: expect === 'auto' && controls.includes(strategy) ? 'oversold' : 'exact',
}));

// A buyer who asks once or twice cannot see that several instances answer.
if (attempts < 4 * buyers) throw new Error(`ATTEMPTS=${attempts}: want at least 4 for each of the ${buyers} BUYERS`);
