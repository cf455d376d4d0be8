package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"example.com/shop/internal/cli"
)

// release is the version that the linker is given: go build -ldflags "-X main.release=v1.2.3".
var release string

// version returns the release, or else what the go command says of the main module.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(release, info.Main.Version, "unknown")
	}
	return cmp.Or(release, "unknown")
}

// versionCommand prints the version.
func versionCommand() cli.Command {
	return cli.Command{
		Name: "version", Summary: "Print the version of this program",
		Examples: []cli.Example{
			{Purpose: "For a report of a defect", Line: "shop version"},
			{Purpose: "Alongside the results of a test; shop --version and shop -v print the same", Line: "shop version > version.txt"},
		},
		Define: func(f *cli.Flags) cli.Run {
			return func(context.Context, []string) error {
				_, err := fmt.Fprintln(f.Stdout, version())
				return err
			}
		},
	}
}
