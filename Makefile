# Everything a developer types. `make help` lists it.

.PHONY: help test build run stop bench clean

help: ## list these targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

test: ## install, build, check (format, lint, dead code) and test
	@bash scripts/check-node.sh
	npm ci --no-audit --no-fund --loglevel=error
	npm run -s check

build: node_modules/.package-lock.json ## install what is missing, and build
	npm run -s build

node_modules/.package-lock.json: package.json package-lock.json
	@bash scripts/check-node.sh
	npm ci --no-audit --no-fund --loglevel=error

run: ## start a clean local broker and prove that it works
	bash run_cluster.sh

stop: ## stop it
	bash run_cluster.sh stop

bench: build ## all benchmarks; one of them: npm run bench -- append
	npm run -s bench -- all

clean: ## remove what was built and the local broker's data
	bash run_cluster.sh clean
	rm -rf build coverage
