# Everything here needs Go, a C compiler (for -race and Vale), git and make; the checks of the API description need Node.js, too. The
# linters, the generator and k6 are built from modules of their own in tools/, tools/vale/ and loadtest/.

SHELL := /bin/bash
.DEFAULT_GOAL := help

LINT    := go tool -modfile=tools/go.mod golangci-lint
# Without formats that gin knows and nobody here speaks, and without the pages on which gRPC shows requests.
# deployments/Dockerfile has the same tags.
TAGS    := nomsgpack,grpcnotrace
VERSION := $(or $(shell git describe --tags --always --dirty 2>/dev/null),unknown)
COMPOSE := SHOP_VERSION=$(VERSION) docker compose -f deployments/docker-compose.yml

# Some tests build the program in other folders; with -trimpath, what is built in one of them is built for all.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

# The race detector would sleep for a second before each end of a program.
export GORACE := atexit_sleep_ms=0

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the service into .bin/shop.
	CGO_ENABLED=0 go build -tags $(TAGS) -ldflags '-w -X main.release=$(VERSION)' -o .bin/shop ./cmd/shop

.PHONY: servers
servers: ## Install the servers that tests need, if they are missing (Debian, Ubuntu).
	@tools/servers.sh

# SQLite here is C that was translated to Go, and Lua an interpreter: looking for races inside
# of them takes more time than all that the tests do themselves. The client of ZooKeeper has a
# race of its own: while it sets its watches again it reads what answers write (lastZxid).
UNRACED := modernc.org github.com/yuin/gopher-lua github.com/go-zookeeper/zk
RACE    := -race $(UNRACED:%=-gcflags=%/...=-race=false)
# -count=1, as a result that the go command remembers says nothing about a server that was upgraded since.
# The linters vet. go build goes first, as go test -p 1 compiles one package at a time, too.
GOTEST   = go test $(RACE) -vet=off -count=1 -timeout $(if $(SHOP_TEST_SOAK),3h,40m)

# Tests of the locks on Redis wait nearly all of the time, and their leases are short. So they run beside the rest, and have precedence
# over it. Of the rest, three packages share the machine, the longest first.
# Those of internal/e2e start whole services and browsers, three tests at a time: six leave 50 processes waiting for two processors. They come
# last, with the machine for themselves: some measure what a service does under overload. They run the program as its users have it; make soak
# adds the race detector.
.PHONY: test-redislock test-rest test-e2e test-bench test-deployments test-texts
test-redislock:
	SHOP_TEST_REQUIRE=1 $(GOTEST) -p 1 -parallel 16 $(if $(SKIP),-skip '$(SKIP)') ./internal/dlock/redislock ./internal/dlock/redissem ./internal/dlock/redistokens ./internal/dlock/redisrw
test-rest:
	SHOP_TEST_REQUIRE=1 $(GOTEST) -p 3 -parallel 4 $$(go list ./internal/sqlstore/blackbox ./... | grep -vE '/redis(lock|sem|tokens|rw)$$|/internal(/e2e(/orderpath)?)?$$')
test-e2e: RACE :=
test-e2e:
	go build ./...
	SHOP_TEST_REQUIRE=1 $(GOTEST) -p 1 -parallel 3 ./internal/e2e
	SHOP_TEST_REQUIRE=1 $(GOTEST) -parallel 7 ./internal/e2e/orderpath
# Tests of texts and of tools have nothing to race, and start thousands of processes.
test-texts:
	go test -vet=off -count=1 -timeout 40m ./internal
test-bench:
	cd bench && SHOP_TEST_REQUIRE=1 go test -p 1 -count=1 -timeout 20m ./...
test-deployments:
	cd deployments && go test -vet=off -count=1 ./...

.PHONY: test
test: servers ## Run every test against real servers; all but those of internal/e2e and of texts with the race detector.
	go build $(RACE) ./...
	{ $(MAKE) test-redislock && nice -n 5 $(MAKE) test-texts test-bench test-deployments; } & beside=$$!; \
	nice -n 5 $(MAKE) test-rest; rest=$$?; wait $$beside && exit $$rest
	$(MAKE) test-e2e

# Packages whose tests start the program, or the servers themselves.
NEED_SERVERS := /(e2e|orderpath|testbed|demo|lab|observe|cli|app)$$

# What make check tests; CI, which tests all of it with servers anyway, names less.
CHECKED = $$(go list ./... | grep -vE '$(NEED_SERVERS)')

.PHONY: check
check: ## Check format and style, and run the tests that need no server; for while you work.
	$(LINT) fmt --diff ./...
	$(LINT) run ./...
	SHOP_TEST_REQUIRE=0 go test -vet=off $(CHECKED)

.PHONY: faults
faults: servers ## Plant each fault of tools/faults, and see its test fail.
	tools/faults.sh all

.PHONY: soak soak-group
soak: servers .bin/victoria-metrics ## Run the same tests at full size, group by group, and plant the faults; takes more than four hours, and wants the machine for itself.
	tools/soak.sh $(ARGS)
soak-group:
	$(GOTEST) -p 2 -parallel $(or $(PARALLEL),4) $(if $(RUN),-run '$(RUN)') $(if $(SKIP),-skip '$(SKIP)') $(PACKAGES)

# Tests of sales on engines with several servers, and servers that are newer than those of Debian, in their place.
ENGINES     := TestSaleOnThreeServers TestSaleOnTwoShardsOfVitess
NEWER_REDIS := redis-8 valkey-9
NEWER_SQL   := mysql-9 mariadb-11.8 postgresql-17
NEWER       := $(CURDIR)/.bin/servers
IN_SQL      := ./internal/platform/sqldb ./internal/sqlstore/blackbox ./internal/timeout/sqltimers ./internal/dlock/sqllock ./internal/cluster/sqlcluster
# MySQL has neither Galera, nor snapshot isolation in the words of MariaDB, nor its sql_mode. Names of tests precede those of cases.
NOT_MYSQL   := Galera|TestNodeOutOfStepIsLeft|TestServerSettingsDoNotMatter|TestHostsThatCannotReplaceEachOther|TestUserWhoWritesToAReadOnlyHostIsRefused
# On Galera, a statement has a round trip of its own, so a row is locked for longer, and a change of the schema ends transactions in its way. Other tests start nodes themselves.
NOT_GALERA  := Galera|TestLonelyOrderTakesThreeRoundTrips|TestBasketIsPlacedAmongSingles|TestMigrationIsPatient

.PHONY: engines engines-sql engines-redis
engines: servers ## Sell on each engine while its servers fail, and write the table; run the suites on newer servers; builds Vitess, which took five minutes.
	tools/newer-servers.sh $(NEWER_REDIS) $(NEWER_SQL) vitess
	$(MAKE) engines-sql
	$(MAKE) engines-redis
	for each in $(ENGINES); do SHOP_TEST_SOAK=1 SHOP_TEST_REQUIRE=1 $(MAKE) soak-group PACKAGES=./internal/e2e RUN="^$$each\$$$$" || exit 1; done
	cd bench && go run ./scale
engines-sql: export SHOP_TEST_REQUIRE := 1
engines-sql:
	PATH="$(NEWER)/mysql-9:$(NEWER)/postgresql-17:$$PATH" $(MAKE) soak-group RACE= PACKAGES="$(IN_SQL)" SKIP='SQLite|$(NOT_MYSQL)|/sqlite|/snapshot'
	PATH="$(NEWER)/mariadb-11.8:$$PATH" $(MAKE) soak-group RACE= PACKAGES="$(IN_SQL)" SKIP='SQLite|PostgreSQL|/sqlite|/postgresql'
	SHOP_TEST_DATABASE=galera $(MAKE) soak-group RACE= PACKAGES="$(filter-out %/sqldb,$(IN_SQL))" SKIP='SQLite|PostgreSQL|$(NOT_GALERA)|/sqlite|/postgresql|/snapshot'
# The library that sets a clock is one for the libc of the machine, and newer servers have another.
engines-redis: export SHOP_TEST_REQUIRE := 1
engines-redis: SKIP := TestClockOfRedisIsSetBack
engines-redis:
	for each in $(NEWER_REDIS); do PATH="$(NEWER)/$$each:$$PATH" \
		$(MAKE) test-redislock soak-group SKIP=$(SKIP) PACKAGES=./internal/e2e RUN='^TestSaleThroughFaultsOfALockService/(Sentinel|Cluster|Redlock)' || exit 1; done

.PHONY: prose
prose: .bin/vale ## Check the words of texts, comments and help: errors and warnings.
	@tools/prose.sh warnings

# Vale takes a minute to build; it is built again only when its version changes.
.bin/vale: tools/vale/go.mod tools/vale/go.sum
	cd tools/vale && go build -o ../../.bin/vale github.com/errata-ai/vale/v3/cmd/vale
	@touch $@

.PHONY: lint
lint: .bin/vale ## Check style, import direction, words, workflows and module files.
	tools/prose.sh
	go tool -modfile=tools/actionlint/go.mod actionlint
	$(LINT) run ./...
	for dir in bench deployments; do (cd $$dir && go tool -modfile=../tools/go.mod golangci-lint run ./...) || exit 1; done
	@# Those of tools/kubernetes and tools/release would have to download hundreds of modules.
	for dir in . tools tools/vale tools/actionlint tools/observe loadtest bench deployments; do (cd $$dir && go mod tidy -diff) || exit 1; done

API         := internal/httpapi/openapi.yaml
API_MODULES := tools/openapi/node_modules/.package-lock.json

# What is installed is what the lock file says, and no lock file names a registry.
tools/%/node_modules/.package-lock.json: tools/%/package.json tools/%/package-lock.json
	tools/node.sh
	cd tools/$* && npm ci --no-progress --loglevel=error
	@touch $@

.PHONY: slides
slides: tools/slides/node_modules/.package-lock.json ## Render the slides of the course as HTML in docs/course.
	cd tools/slides && npx --no-install marp ../../docs/course/slides.md ../../docs/course/slides.zh.md

.PHONY: lint-api
lint-api: export REDOCLY_TELEMETRY := off
lint-api: export REDOCLY_SUPPRESS_UPDATE_NOTICE := true
lint-api: $(API_MODULES) ## Check the API description with Redocly and Spectral.
	@! grep -Hn '"resolved"' tools/*/package-lock.json
	cd tools/openapi && npx --no-install redocly lint --config redocly.yaml ../../$(API)
	cd tools/openapi && npx --no-install spectral lint --ruleset spectral.yaml --fail-severity=hint ../../$(API)

.PHONY: api-client
api-client: build $(API_MODULES) ## Run the life of an order with clients in TypeScript and Go, generated from the description of the API.
	tools/openapi/client.sh .bin/shop

.PHONY: fmt
fmt: ## Format the code.
	$(LINT) fmt ./...

.PHONY: gen
gen: ## Generate code from the API description and its tables, and the reference pages from the code.
	go test ./internal/httpapi -run TestSpecificationHasTheProblemTable -count=1 -update
	go generate ./internal/...
	go test ./internal -run 'TestPackagesPage|TestTelemetrySchema' -count=1 -update
	go test ./internal/dlock -run TestFaultTables -count=1 -update
	go test ./cmd/shop -run TestReferencePages -count=1 -update
	go test ./internal/show/observe -run TestDashboardsAreGenerated -count=1 -update
	go test ./internal/show/lab -run TestEachLabHasItsPage -count=1 -update

.PHONY: order-path
order-path: ## Measure which code an order runs, and write the table of docs/architecture.md; takes a minute.
	SHOP_TEST_REQUIRE=1 go test ./internal/e2e/orderpath -run TestPathOfAnOrder -count=1 -parallel 7 -update

.PHONY: gen-check
gen-check: gen
	@git diff --exit-code -- '*.gen.go' docs/packages.md docs/reference/metrics.md docs/reference/traces.md deployments/observe docs/reference/cli.md docs/reference/configuration.md docs/reference/fault-tests.md docs/labs docs/bibliography.md $(API) || { echo 'generated code is out of date: commit what make gen wrote' >&2; exit 1; }

.PHONY: demo
demo: ## Watch a flash sale oversell without a lock and end exact with one.
	go run ./cmd/shop demo $(ARGS)

.PHONY: observe
observe: servers build .bin/victoria-metrics ## Run a slow sale with faults, and look at its metrics and logs in the browser.
	go build -o .bin/observe ./internal/show/observe
	PATH="$(CURDIR)/.bin:$$PATH" .bin/observe

# VictoriaMetrics and VictoriaLogs take a minute to build; they are built again only when a version changes.
.bin/victoria-metrics: tools/observe/go.mod tools/observe/go.sum
	cd tools/observe && CGO_ENABLED=0 go build -o ../../.bin/ github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs
	@touch $@

.PHONY: screenshots
screenshots: .bin/victoria-metrics ## Take the pictures of the control room and of the dashboards in docs/images; installs Chromium, MariaDB and a Chinese font where there is apt.
	@tools/servers.sh pictures
	go test ./internal/e2e -run '^TestScreenshots$$' -count=1 -screenshots "$(CURDIR)/docs/images"
	SHOP_TEST_SOAK=1 go test ./internal/show/observe -run '^TestMakeObserve$$' -count=1 -screenshots "$(CURDIR)/docs/images"

.PHONY: labs
labs: ## Run all labs, and write their pages and pictures to docs/labs; takes a few minutes.
	go run ./cmd/shop lab run all --out docs/labs

.PHONY: loadtest
loadtest: .bin/k6 ## Put load on three instances, let orders expire, and audit the books.
	./loadtest/run.sh $(ARGS)

.PHONY: bench-locks
bench-locks: ## Measure the locks beside those of other libraries; takes less than six minutes.
	cd bench && go run ./locks -markdown ../docs/benchmarks/locks.md $(ARGS)

.PHONY: bench-timers
bench-timers: ## Measure the timers beside asynq; takes less than four minutes.
	cd bench && go run ./timers -markdown ../docs/benchmarks/timers.md $(ARGS)

.PHONY: bench-orders
bench-orders: ## Measure orders per second by every strategy, beside one lock of redsync per order; takes a quarter of an hour.
	cd bench && go run ./orders -out ../docs/benchmarks/results $(ARGS)

.PHONY: bench-scale
bench-scale: ## Measure one to three instances, fit a model, and simulate many machines; takes a quarter of an hour.
	cd bench && go run ./scale -rounds 5 && go run ./scale

# k6 takes a minute to build; it is built again only when its version changes.
.bin/k6: loadtest/go.mod loadtest/go.sum
	cd loadtest && go build -o ../.bin/k6 go.k6.io/k6/v2
	@touch $@

.PHONY: up
up: ## Start the whole stack in containers on 127.0.0.1:8080.
	$(COMPOSE) up --build --detach --wait
	@echo "The control room: http://127.0.0.1:$${SHOP_PORT:-8080}/"

.PHONY: down
down: ## Stop the stack and delete its data.
	$(COMPOSE) down --volumes

.PHONY: kubernetes
kubernetes: servers ## Apply the overlays to an API server that is built from source; the first build takes ten minutes of processor time.
	cd tools/kubernetes && CGO_ENABLED=0 GOBIN=$(CURDIR)/.bin/kubernetes go install -ldflags '-s -w' tool
	cd deployments && SHOP_TEST_KUBERNETES=$(CURDIR)/.bin/kubernetes go test -run '^TestKubernetesServer$$' -count=1 -v .

.PHONY: release-check
release-check: ## Build a release twice and compare; publishes nothing. The first build takes ten minutes of processor time.
	tools/release.sh

.PHONY: smoke
smoke: ## Start the stack, sell on it, and delete it; with RESTART, restart the Docker engine by that command.
	deployments/smoke.sh

.PHONY: ci
ci: check lint lint-api slides gen-check test build api-client demo ## Run everything that has to pass before a merge.
	tools/faults.sh path
	$(MAKE) loadtest
ci: CHECKED = ./internal/dlock ./internal/stock
