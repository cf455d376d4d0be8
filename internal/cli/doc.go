// Package cli describes the commands of the program for cobra, and contains the commands for operators.
//
// # Command tree
//
// A program is a tree of [Command] values, which are data: name, summary, arguments, flags, examples and exit codes. [Program]
// makes commands of cobra of them, which parses command lines, suggests commands and prints completion scripts. By hand are only
// the help, because that of cobra has no groups of flags, variables and exit codes, and the words of errors, which say what to do.
//
// The function Define of a command defines its flags and returns the function that does the work.
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
