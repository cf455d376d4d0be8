// Package cli contains the framework of the command line and the commands for operators.
//
// # Command tree
//
// A program is a tree of [Command] values, which are data: name, summary, arguments, flags, examples and exit codes. Everything
// that describes the command line reads this tree: parsing, help, suggestions, shell completion, and docs/reference.
//
// The function Define of a command defines its flags and returns the function that does the work. So the help defines the same
// flags as the command itself.
//
// # Variables
//
// [VariableRule] says which flags have an environment variable. A flag has precedence over its variable.
//
// # Errors
//
// A [UsageError] says what is wrong, with which value, and what to do. The program prints it in one line and exits with 2.
//
// # Commands for operators
//
// Most of the commands of [Operators] send a request to a running instance. audit, fence, keys and migrate open the
// database themselves.
package cli
