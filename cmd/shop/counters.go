// This file is only in the program that TestPathOfAnOrder builds with coverage.

//go:build ordercover

package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/coverage"
	"strings"
)

func init() { go obey() }

// obey executes the commands of the test: lines of standard input that name a command and a folder or file. It confirms each
// by a line with the error to file descriptor 3. The process ends with its input.
func obey() {
	done := os.NewFile(3, "done")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		command, path, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch command {
		case "meta":
			err = coverage.WriteMetaDir(path)
		case "clear":
			err = coverage.ClearCounters()
		case "write":
			err = coverage.WriteCountersDir(path)
		case "stacks":
			stacks := make([]byte, 1<<22)
			err = os.WriteFile(path, stacks[:runtime.Stack(stacks, true)], 0o600)
		}
		fmt.Fprintln(done, err)
	}
	os.Exit(0)
}
