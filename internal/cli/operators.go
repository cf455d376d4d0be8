package cli

// Operators returns the commands for operators.
func Operators() []Command {
	return []Command{
		{
			Name: "audit", What: "compare columns, ledger and orders in the database",
			More: "; exit 1 if they disagree, or orders are open long after their expiry", Run: Audit,
		},
		{Name: "timers", What: "manage the timers of a running instance", Run: Timers},
		{Name: "cluster", What: "show the instances and who leads them", Run: Cluster},
		{Name: "events", What: "follow what happens in all instances", More: ", until Ctrl-C; what is missed is said", Run: Events},
		{Name: "config", What: "manage the settings that instances share", Run: Config},
		{Name: "keys", What: "make, list and revoke API keys", Run: Keys},
		{Name: "fence", What: "let a lock service that has lost its data sell again", Run: Fence},
		{Name: "migrate", What: "bring the schema up to date", More: "; safe from several instances at once", Run: Migrate},
		{Name: "healthcheck", What: "ask a running instance whether it is ready", More: "; exit 1 if it is not", Run: Healthcheck},
	}
}
