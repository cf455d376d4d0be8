// What the page knows: levels, leases, orders, members and the latest events.

import {get, stream} from './api.js';

const keep = {skus: 200, leases: 2000, refused: 200, orders: 200, events: 200, delays: 2000, changes: 10};

export class State {
  skus = new Map();
  leases = new Map(); // by SKU, instance and fencing token
  waiting = new Map(); // how many orders wait for a lease, by SKU and instance
  refused = [];
  orders = new Map();
  members = new Map();
  cluster = {config: []};
  leader = '';
  strategies = [];
  events = []; // each with its number and text
  delays = []; // milliseconds from the expiry of an order to the release of its units
  connection = 'connecting'; // live, lost, refused
  error = '';
  resets = 0;
  #latest = new Map(); // the latest lease of each SKU and instance
  #forgotten = new Map(); // how many grants of a SKU are not among leases any more, and when the last of them began
  #applied = 0; // events
  #lastID = '';
  #refreshing = false;
  #changed;

  // changed is called after each change. It must not block.
  constructor(changed) {
    this.#changed = changed;
  }

  // run follows the events until signal is aborted. Another run continues where this one has ended, or loads the present state.
  async run(signal) {
    for (let pause = 500; !signal.aborted; pause = Math.min(2 * pause, 5000)) {
      try {
        for await (const notice of stream('/api/v1/events', this.#lastID, signal)) {
          if (signal.aborted) return;
          if (notice.event === 'reset') await this.load(signal);
          else if (notice.event) this.apply(notice.data);
          if (notice.id) this.#lastID = notice.id; // last, so that a reset whose load failed comes again
          this.connection = 'live';
          this.error = '';
          pause = 500;
          this.#changed();
        }
        this.connection = 'lost';
      } catch (err) {
        if (signal.aborted) return;
        this.connection = err.status === 401 || err.status === 403 ? 'refused' : 'lost';
        this.error = err.message;
      }
      this.#changed();
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  // load reads the present state. Events that follow are newer, or are compared by version.
  async load(signal) {
    const [skus, orders, strategies, cluster] = await Promise.all([
      get('/api/v1/skus?limit=100', signal), get('/api/v1/orders?limit=100', signal),
      get('/api/v1/strategies', signal), get('/api/v1/cluster', signal).catch(() => undefined)]);
    signal.throwIfAborted(); // that of the cluster may have failed for this reason
    this.resets++;
    this.#end(() => true);
    this.waiting.clear(); // the end of a wait may be missing
    this.skus = new Map(skus.skus.map((s) => [s.sku, s]));
    this.orders = new Map(orders.orders.toReversed().map((o) => [o.id, o])); // the latest one comes last
    this.#set(strategies, cluster);
  }

  // refresh reads what no event tells: strategies and settings. It fails silently, as run says whether there is a connection.
  async refresh(signal) {
    if (this.#refreshing) return; // an instance that is paused answers none
    this.#refreshing = true;
    try {
      this.#set(...await Promise.all([get('/api/v1/strategies', signal), get('/api/v1/cluster', signal)]));
      this.#changed();
    } catch { /* the next one may succeed */ }
    this.#refreshing = false;
  }

  #set(strategies, cluster) {
    this.strategies = strategies.strategies;
    if (!cluster) return;
    this.cluster = cluster;
    this.members = new Map(cluster.members.map((m) => [m.name, m]));
    this.leader = cluster.leader?.name ?? '';
  }

  // apply applies one event.
  apply(event) {
    // The text of 32 leases would be most of what the page keeps.
    const text = JSON.stringify(event[event.type], (name, value) => name === 'leases' || name === 'refused' ? value.slice(-1) : value);
    this.events = [{number: ++this.#applied, at: event.at, type: event.type, instance: event.instance, text}, ...this.events.slice(0, keep.events - 1)];
    const {stock, lock, order, member, leader} = event;
    const known = this.skus.get(stock?.sku);
    if (stock && !(known?.version > stock.version)) {
      this.skus.delete(stock.sku); // the latest one comes last
      this.skus.set(stock.sku, {...known, ...stock});
      trim(this.skus, keep.skus);
    }
    if (order?.status === 'EXPIRED' && this.orders.get(order.id)?.status !== 'EXPIRED') {
      this.delays = [...this.delays.slice(1 - keep.delays), Date.parse(event.at) - Date.parse(order.expires_at)];
    }
    if (order && !(order.status === 'PENDING' && settled(this.orders.get(order.id)))) { // an event may be late
      const changes = [...this.orders.get(order.id)?.changes ?? [], {status: order.status, at: event.at}].slice(-keep.changes);
      this.orders.delete(order.id); // the latest one comes last
      this.orders.set(order.id, {...order, changed_at: event.at, changes});
      trim(this.orders, keep.orders);
    }
    if (lock) this.#hold(lock, Date.parse(event.at));
    if (member?.left) {
      this.members.delete(member.name);
      for (const [key, {holder}] of this.waiting) if (holder === member.name) this.waiting.delete(key);
      this.#end((lease) => lease.holder === member.name);
    }
    if (member && !member.left) this.members.set(member.name, {...this.members.get(member.name), ...member});
    if (leader) this.leader = leader.ended ? '' : leader.name;
  }

  // #end ends leases of which no event will tell the end, when they were last heard of: their holder has left, or events were missed.
  // A lease whose expiry is known ends by itself.
  #end(which) {
    for (const lease of this.leases.values()) if ((lease.until ?? lease.expires) === undefined && which(lease)) lease.until = Math.max(lease.from, lease.seen);
  }

  #hold(lock, at) {
    const key = `${lock.sku} ${lock.holder}`;
    this.waiting.delete(key);
    if (lock.waiting) this.waiting.set(key, {sku: lock.sku, holder: lock.holder, orders: lock.waiting});
    trim(this.waiting, keep.leases);
    const time = (text) => text ? Date.parse(text) : undefined;
    // An event counts all grants since the one before it, and has the latest of them.
    let unseen = (lock.count ?? 0) - (lock.leases ?? []).filter((l) => !this.leases.has(`${key} ${l.fence}`)).length;
    for (const lease of lock.leases ?? []) {
      const known = this.leases.get(`${key} ${lease.fence}`), grants = known?.grants ?? 1 + Math.max(0, unseen);
      if (!known) unseen = 0;
      const from = time(lease.from), next = {sku: lock.sku, holder: lock.holder, fence: lease.fence, asked: time(lease.asked), from, until: time(lease.until), expires: time(lease.expires), seen: at || from, grants};
      this.leases.set(`${key} ${lease.fence}`, next);
      // An event has the latest leases only, so the end of an earlier one may be missing. It is known to have lasted until it was last seen.
      const before = this.#latest.get(key);
      if (before && before.fence < next.fence && before.until === undefined) before.until = Math.min(before.seen, from);
      if (!before || before.fence <= next.fence) {
        this.#latest.delete(key); // the latest one comes last
        this.#latest.set(key, next);
      }
    }
    trim(this.#latest, keep.leases);
    trim(this.leases, keep.leases, ({sku, grants, from}) => {
      const before = this.#forgotten.get(sku) ?? {grants: 0, last: 0};
      this.#forgotten.delete(sku); // the latest one comes last
      this.#forgotten.set(sku, {grants: before.grants + grants, last: Math.max(before.last, from)});
    });
    trim(this.#forgotten, keep.leases);
    for (const r of lock.refused ?? []) this.refused.push({sku: lock.sku, holder: lock.holder, ...r, at: Date.parse(r.at)});
    this.refused = this.refused.slice(-keep.refused);
  }

  // lacks reports whether the page has forgotten a lease of a SKU that began after a moment.
  lacks(sku, since) { return this.#forgotten.get(sku)?.last > since; }

  // ordinals returns the number of the grant by fencing token: the nth of the SKU since the page follows its events. A token is a clock or
  // a counter, whose last digits show no order. The newer one of two tokens has the larger number.
  ordinals(sku) {
    const grants = new Map([...this.leases.values()].filter((l) => l.sku === sku).map((l) => [l.fence, l.grants]));
    for (const r of this.refused) {
      if (r.sku === sku) for (const fence of [r.fence, r.accepted]) if (!grants.has(fence)) grants.set(fence, 1);
    }
    let n = this.#forgotten.get(sku)?.grants ?? 0;
    return new Map([...grants].sort(([a], [b]) => a - b).map(([fence, count]) => [fence, n += count]));
  }
}

const settled = (order) => order && order.status !== 'PENDING' && order.status !== 'QUEUED';

// trim removes the oldest entries of a map.
function trim(map, most, removed = () => {}) {
  for (const [key, value] of map) {
    if (map.size <= most) return;
    map.delete(key);
    removed(value);
  }
}

// expired reports whether a lease expired before its holder had finished.
export const expired = (lease, now) => lease.expires < (lease.until ?? now);

// endOf returns when the use of a lease ended. A holder that has not ended it by its expiry is taken to have stopped, until an event
// has a later end.
export const endOf = (lease, now) => lease.until ?? Math.min(now, lease.expires ?? now);

// doubleHolds returns the pairs of leases of one SKU that two instances used at the same time.
export function doubleHolds(leases, now) {
  const sorted = [...leases].sort((a, b) => a.from - b.from);
  const pairs = [];
  let open = [];
  for (const lease of sorted) {
    open = open.filter((o) => endOf(o, now) > lease.from);
    for (const o of open) if (o.holder !== lease.holder && o.sku === lease.sku) pairs.push([o, lease]);
    open.push(lease);
  }
  return pairs;
}
