// Package cli has the commands of operators, and what all commands of the program share: flags that can be given by the environment, groups
// of commands, and exit codes.
//
// Most commands ask a running instance over HTTP. audit, fence, keys and migrate open the database themselves.
package cli
