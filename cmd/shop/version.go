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

// printVersion prints the version.
func printVersion(_ context.Context, f *cli.Flags, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	_, err := fmt.Fprintln(f.Stdout, version())
	return err
}
