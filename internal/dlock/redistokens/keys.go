package redistokens

const defaultPrefix = "shop:sem:"

// Every key of the token semaphores is built here. The braces are a hash tag: all
// keys of one semaphore live in one slot of a Redis Cluster, as a script requires.

// keys are those that every script has, and the lists of some holders.
func (t *Tokens) keys(key string, holders ...string) []string {
	base := t.prefix + "{" + key + "}"
	keys := []string{base + ":free", base + ":tokens", base + ":turn", base + ":holders", base + ":reaped", base + ":withheld"}
	for _, name := range holders {
		keys = append(keys, base+":held:"+name)
	}
	return keys
}

// usedKey holds the names of the semaphores that a named process has used.
func (t *Tokens) usedKey() string { return t.prefix + "used:" + t.name }
