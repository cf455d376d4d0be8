// The texts of the page, in English and Chinese.

const texts = {
  title: ['Control room', '控制室'],
  connecting: ['connecting', '连接中'], live: ['live', '实时'], lost: ['connection lost, retrying', '连接中断，正在重试'], refused: ['an API key is needed', '需要 API 密钥'],
  lostPage: ['The page shows what it received last. Buttons may have no effect', '页面显示的是最后收到的内容，按钮可能无效'],
  lostRoom: ['The control room does not respond. The page tries again each second', '控制室没有响应，页面每秒重试'],
  noResponseIn: [(s) => `no response within ${s} s. The effect is unknown, and the page does not send it again`, (s) => `${s} 秒内没有响应，效果未知，页面不会再次发送`],
  noConnection: ['the connection failed. The effect is unknown, and the page does not send it again', '连接失败，效果未知，页面不会再次发送'],
  reloaded: [(n) => `reloaded ${n} times, as events were missed`, (n) => `错过事件，已重新加载 ${n} 次`],
  pause: ['Pause the page', '暂停页面'], resume: ['Resume the page', '继续'],
  pausedPage: ['Buttons still act. The page shows what they did when it resumes', '按钮仍会生效，页面继续后才显示结果'],
  key: ['API key', 'API 密钥'], open: ['Open', '打开'],
  window: ['Time shown', '显示时间'],
  lane: ['Lock lane', '锁时间线'], now: ['now', '现在'],
  laneLabel: [(leases, double, refused) => `${leases} leases, ${double} of them overlapped another, ${refused} refused writes`, (leases, double, refused) => `${leases} 个租约，${double} 次同时持有，${refused} 次写入被拒绝`],
  doubleHolds: ['leases overlapped another', '次两个实例同时持有'], refusedWrites: ['writes refused by their fencing token', '次写入因隔离令牌过期被拒绝'],
  waitingOrders: ['orders wait for the lease', '个订单等待租约'], waits: [(n) => `${n} waiting`, (n) => `${n} 个等待`],
  expired: ['expired', '已过期'], expiredAfter: [(ms) => `expired after ${ms} ms`, (ms) => `${ms} 毫秒后过期`],
  latestLeases: ['Latest leases', '最近的租约'], instance: ['instance', '实例'], token: ['fencing token', '隔离令牌'], heldFor: ['duration', '持有时间'], inUse: ['in use', '使用中'],
  stock: ['Stock', '库存'], noStock: ['No SKU is on sale.', '没有在售商品。'], strategy: ['strategy', '策略'], onHand: ['on hand', '现有'], reserved: ['reserved', '已预占'], available: ['available', '可售'],
  oversoldBy: [(n) => `oversold by ${n}`, (n) => `超卖 ${n}`],
  members: ['Instances', '实例'], leader: ['leader', '领导者'], settings: ['Settings', '设置'], strategies: ['Strategies', '策略'],
  orders: ['Orders', '订单'], order: ['order', '订单'], items: ['items', '商品'], status: ['status', '状态'], expiresIn: ['expires in', '剩余时间'],
  delays: [(n) => `Delay from expiry to release, ${n} orders`, (n) => `到期到释放的延迟，${n} 个订单`], early: ['early', '提前'],
  unpaid: ['Place 100 unpaid orders', '下 100 个不付款的订单'], sayUnpaid: ['They expire after 10 s, and all instances release their units', '10 秒后到期，由所有实例释放库存'],
  permitsInUse: [(inUse, permits, waiting) => `${permits ? `permits ${inUse} of ${permits}` : 'no limit'} · wait list ${waiting}`, (inUse, permits, waiting) => `${permits ? `许可 ${inUse}/${permits}` : '无上限'} · 排队 ${waiting}`], degraded: ['without Redis: own share', '无 Redis：使用自己的份额'],
  labs: ['Labs', '实验'], run: ['Run', '运行'], runLab: [(title) => `Run the lab: ${title}`, (title) => `运行实验：${title}`], expect: ['Expect', '预期'], why: ['Why', '原因'], cure: ['Cure', '解决'], byCommand: ['By command', '命令'], inTheCode: ['In the code', '代码'], exercises: ['Exercises', '练习'], read: ['Read', '阅读'], minutes: [(n) => `${n} min`, (n) => `${n} 分钟`], chooseLab: ['Choose a question', '选择一个问题'],
  shown: ['shown', '已证实'], 'not shown': ['not shown', '未证实'], inconclusive: ['inconclusive', '无结论'], runningLab: ['running', '运行中'],
  walk: ['Steps of the run', '运行步骤'], fromStart: ['From the question', '从问题开始'], previous: ['Previous', '上一步'], next: ['Next', '下一步'],
  question: ['Question', '问题'], verdict: ['Verdict', '结论'], stepOf: [(n, of) => `Step ${n} of ${of}`, (n, of) => `第 ${n} 步，共 ${of} 步`],
  effect: ['effect', '现象'],
  actions: ['actions', '操作'],
  events: ['Events', '事件'], filter: ['Filter', '筛选'],
  pay: ['Pay', '付款'], cancel: ['Cancel', '取消'],
  sale: ['Sale', '销售'], first: ['strategy', '策略'], second: ['compared with', '对照策略'], none: ['none', '无'], units: ['units', '库存数量'], attempts: ['attempts', '请求总数'],
  buyers: ['concurrent buyers', '并发数'], wait: ['wait if sold out, s', '售罄后等待（秒）'], start: ['Start the sale', '开始销售'], stop: ['Stop the sale', '停止销售'],
  sold: ['sold', '已售'], refusedOrders: ['refused', '已拒绝'], unanswered: ['no response', '无响应'], left: ['in stock', '剩余'], oversold: ['OVERSOLD', '超卖'], exact: ['exact', '准确'], exactSoFar: ['exact so far', '目前准确'], lostUpdates: ['lost updates', '更新丢失'],
  perSecond: ['orders/s', '订单/秒'], p99: ['p99 ms', 'p99 毫秒'], notAudited: ['not audited yet', '尚未对账'], audited: [(at) => `audited at ${at}`, (at) => `对账于 ${at}`],
  machines: ['Instances and stores', '实例与存储'], ready: ['ready', '就绪'], notReady: ['not ready', '未就绪'],
  running: ['running', '运行中'], paused: ['paused', '已暂停'], ended: ['ended', '已结束'], starting: ['starting', '启动中'], stopping: ['stopping', '停止中'], up: ['up', '正常'], noAnswer: ['no response', '无响应'], slow: ['slow', '缓慢'], cutOff: ['cut off from Redis', '与 Redis 断开'],
  noDatabaseFaults: ['SQLite is a file, with no connection to break. For faults of the database, start the room with --database mysql://…', 'SQLite 是文件，没有可断开的连接。要制造数据库故障，请用 --database mysql://… 启动控制室'],
  redis: ['Redis', 'Redis'], database: ['Database', '数据库'], allActions: ['What the other buttons do', '其他按钮的作用'],
  'do-pause': ['Pause', '暂停'], 'say-pause': ['SIGSTOP: the process is paused and keeps its connections', 'SIGSTOP：进程停住，连接保留'],
  'do-resume': ['Resume', '继续'], 'say-resume': ['SIGCONT: the process resumes', 'SIGCONT：进程从原处继续'],
  lateHolder: ['Make a holder late', '让一个持有者迟到'], sayLateHolder: ['One more process takes the lease, is paused until it has expired, and then writes with its old token', '另一个进程取得租约后被暂停，租约过期后才用旧令牌写入'],
  'do-late': ['Make late', '使其迟到'], 'say-late': ['The process is paused for 5 s (SIGSTOP). Its leases expire before it resumes, so another instance may hold them by then', '进程暂停 5 秒（SIGSTOP）。恢复之前租约已过期，可能已由其他实例持有'],
  'do-kill': ['Kill', '强制结束'], 'say-kill': ['SIGKILL: the process ends at once. Its orders in flight get no response', 'SIGKILL：进程立即消失，正在处理的订单得不到答复'],
  'do-stop': ['Stop', '停止'], 'say-stop': ['The process finishes its requests and ends', '进程处理完当前请求后退出'],
  'do-start': ['Start', '启动'], 'say-start': ['Start the instance again, under the same name', '以相同名称重新启动'],
  'do-cut-off': ['Cut off', '断开'], 'say-cut-off': ['The instance runs, but nothing passes between it and Redis. It cannot acquire or renew leases there until you press Reconnect', '实例继续运行，但与 Redis 之间不再传输数据。按“恢复连接”之前，它无法在 Redis 取得租约或续租'],
  'do-reconnect': ['Reconnect', '恢复连接'], 'say-reconnect': ['The connection between this instance and Redis works again', '恢复此实例与 Redis 的连接'],
  'do-redis-wipe': ['Wipe', '清空'], 'say-redis-wipe': ['FLUSHALL: Redis loses everything: leases, queues, permits, counters', 'FLUSHALL：Redis 丢失所有数据：租约、队列、许可、计数'],
  'do-redis-pause': ['Pause', '暂停'], 'say-redis-pause': ['Nothing passes between the instances and Redis', '实例与 Redis 之间不再传输数据'],
  'do-redis-slow': ['Slow', '减速'], 'say-redis-slow': ['Each request to Redis takes 20 ms more', '每个 Redis 请求增加 20 毫秒'],
  'do-redis-resume': ['Mend', '恢复'], 'say-redis-resume': ['Redis works normally again', 'Redis 恢复正常'],
  'do-database-pause': ['Pause', '暂停'], 'say-database-pause': ['Nothing passes between the instances and the database', '实例与数据库之间不再传输数据'],
  'do-database-slow': ['Slow', '减速'], 'say-database-slow': ['Each statement takes 20 ms more', '每条语句增加 20 毫秒'],
  'do-database-resume': ['Mend', '恢复'], 'say-database-resume': ['The database works normally again', '数据库恢复正常'],
  'do-database-disconnect': ['Break connections', '断开连接'], 'say-database-disconnect': ['Each connection to the database breaks; new ones succeed', '断开所有数据库连接，可重新建立'],
};

const name = 'shop-language';
let now = localStorage.getItem(name) ?? (navigator.language.startsWith('zh') ? 'zh' : 'en');

export const language = () => now;

export function setLanguage(to) {
  now = to;
  localStorage.setItem(name, to);
  document.documentElement.lang = to;
}

// t returns a text in the language of the page.
export function t(key, ...values) {
  const text = texts[key][now === 'zh' ? 1 : 0];
  return typeof text === 'function' ? text(...values) : text;
}

setLanguage(now);
