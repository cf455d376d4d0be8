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

// The others, which have to be killed by then.
export const dying = urls.filter((u) => !survivors.includes(u));

// An admin's key, for deployments that ask for one.
export const apiKey = __ENV.API_KEY || '';

// Orders of expiry.js, baskets of baskets.js, keys of retries.js.
export const unpaid = whole('UNPAID', 100);
export const baskets = whole('BASKETS', 1000);
export const keys = whole('KEYS', 160);

// Customers of waiting.js, the units that come back while they wait, and for how many seconds
// each does: for long enough that units come back in time on a machine that stands still for a while.
export const waiters = whole('WAITERS', 30);
export const units = whole('UNITS', 20);
export const waits = whole('WAITS', 20);

// What limits.js expects of the deployment; 0 finds out.
export const permits = whole('PERMITS', 0, 0);
export const customerRate = whole('CUSTOMER_RATE', 0, 0);

export const stock = whole('STOCK', 100);
export const attempts = whole('ATTEMPTS', 800);
export const buyers = whole('BUYERS', 32);
export const maxDuration = __ENV.MAX_DURATION || '10m';

// Fewer instances than this, and the sale says nothing about a distributed system.
export const minInstances = whole('MIN_INSTANCES', 2);

// Where the reports go; an empty name writes none.
export const out = __ENV.OUT === undefined ? 'out' : __ENV.OUT;

// What an exact variant sells: every unit that somebody wants, and none twice.
export const exactly = Math.min(stock, attempts);

// EXPECT=exact judges the baselines as if they were safe: a run that must end red, and so
// shows that the judge can tell.
const expect = __ENV.EXPECT || 'auto';
if (expect !== 'auto' && expect !== 'exact') throw new Error(`EXPECT=${expect}: want auto or exact`);

// A mutex in one process is an unsafe baseline only when there is a second process.
const baselines = minInstances > 1 ? ['naive', 'local'] : ['naive'];

// One variant per strategy: the same sale of the same stock, of a SKU that this strategy guards.
export const variants = [...new Set(list('STRATEGIES', 'naive,redis'))].map((strategy) => ({
  strategy,
  expected: expect === 'auto' && baselines.includes(strategy) ? 'oversold' : 'exact',
}));

// The strategies of what baskets.js, limits.js and retries.js sell, which must be exact.
export const exact = list('EXACT', 'conditional,redis');

// SAFE=no leaves out what makes a script safe: the keys of retries.js, the patience of
// waiting.js. It must end red, too.
const asked = __ENV.SAFE || 'yes';
if (asked !== 'yes' && asked !== 'no') throw new Error(`SAFE=${asked}: want yes or no`);
export const safe = asked === 'yes';
