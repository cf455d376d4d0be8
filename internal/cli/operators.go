package cli

// Operators returns the commands for operators.
func Operators() []Command {
	return []Command{
		auditCommand(), timersCommand(), clusterCommand(), eventsCommand(), configCommand(), keysCommand(), fenceCommand(),
		migrateCommand(), healthcheckCommand(),
	}
}

// adminKey is the variable of the commands that send requests to an instance.
var adminKey = []Variable{{keyVariable, "Send this API key of an admin, for instances with --auth keys; it is no flag, as every user can read the flags of a process"}}
