# Everything here needs Go, a C compiler (for -race), git and make. The linter, the
# generator and k6 are built from modules of their own in tools/ and loadtest/.

SHELL := /bin/bash
.DEFAULT_GOAL := help

LINT    := go tool -modfile=tools/go.mod golangci-lint
COMPOSE := docker compose -f deployments/docker-compose.yml

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the service into .bin/shop.
	go build -trimpath -o .bin/shop ./cmd/shop

.PHONY: servers
servers: ## Install the servers that tests need, if they are missing (Debian, Ubuntu).
	@tools/servers.sh

# One package at a time: leases that are renewed on time and load tests that take every
# core are not to be judged beside each other. Within a package most tests wait, those of
# redislock nearly all of the time; others start whole services, or servers in Java.
# SQLite here is C that was translated to Go, and Lua an interpreter: looking for races inside
# of them takes more time than all that the tests do themselves. The client of ZooKeeper has a
# race of its own: while it sets its watches again it reads what answers write (lastZxid).
UNRACED := modernc.org github.com/yuin/gopher-lua github.com/go-zookeeper/zk
GOTEST  := go test -race $(UNRACED:%=-gcflags=%/...=-race=false) -p 1

.PHONY: test
test: servers ## Run every test against real servers, with the race detector.
	SHOP_TEST_REQUIRE=1 $(GOTEST) -parallel 16 -timeout 40m ./internal/dlock/redislock
	SHOP_TEST_REQUIRE=1 $(GOTEST) -parallel 6 -timeout 40m $$(go list ./... | grep -v /redislock$$)

.PHONY: soak
soak: servers ## Run the same tests at full size; takes up to an hour.
	SHOP_TEST_REQUIRE=1 SHOP_TEST_SOAK=1 $(GOTEST) -parallel 6 -count=1 -timeout 60m ./...

.PHONY: lint
lint: ## Check style, import direction and module files.
	$(LINT) run ./...
	go vet ./...
	cd loadtest/peers && go vet ./...
	for dir in . tools loadtest; do (cd $$dir && go mod tidy -diff) || exit 1; done

.PHONY: fmt
fmt: ## Format the code.
	$(LINT) fmt ./...

.PHONY: gen
gen: ## Generate code from the API description.
	go generate ./internal/...

.PHONY: gen-check
gen-check: gen
	@git diff --exit-code -- '*.gen.go' || { echo 'generated code is out of date: commit what make gen wrote' >&2; exit 1; }

.PHONY: demo
demo: ## Watch a flash sale oversell without a lock and end exact with one.
	go run ./cmd/shop demo $(ARGS)

.PHONY: loadtest
loadtest: .bin/k6 ## Put load on three instances, let orders expire, and audit the books.
	./loadtest/run.sh $(ARGS)

.PHONY: bench-locks
bench-locks: ## Measure the locks beside those of other libraries; takes less than six minutes.
	cd loadtest/peers && go run . -markdown ../../docs/benchmarks-locks.md $(ARGS)

.PHONY: bench-timers
bench-timers: ## Measure the timers beside asynq; takes less than four minutes.
	cd loadtest/peers && go run ./timers -markdown ../../docs/benchmarks-timers.md $(ARGS)

.PHONY: bench-orders
bench-orders: ## Measure orders per second by every strategy, beside one lock of redsync per order; takes six minutes.
	cd loadtest/peers && go run ./throughput -out ../../docs/results $(ARGS)

# k6 takes a minute to build; it is built again only when its version changes.
.bin/k6: loadtest/go.mod loadtest/go.sum
	cd loadtest && go build -o ../.bin/k6 go.k6.io/k6/v2
	@touch $@

.PHONY: up
up: ## Start the whole stack in containers on 127.0.0.1:8080.
	$(COMPOSE) up --build --detach

.PHONY: down
down: ## Stop the stack and delete its data.
	$(COMPOSE) down --volumes

.PHONY: ci
ci: lint gen-check test demo ## Run everything that has to pass before a merge.
	$(MAKE) loadtest
