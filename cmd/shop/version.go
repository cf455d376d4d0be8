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

// described returns the version with the commit and its date, which the go command knows of a program that it builds in a checkout.
func described(info *debug.BuildInfo) string {
	of := map[string]string{}
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	text := cmp.Or(release, info.Main.Version, "unknown")
	if of["vcs.revision"] == "" {
		return text
	}
	text += fmt.Sprintf(" (commit %s, %s", of["vcs.revision"], of["vcs.time"])
	if of["vcs.modified"] == "true" {
		text += ", with changes"
	}
	return text + ")"
}

// build returns what [described] says of this program.
func build() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return described(info)
	}
	return version()
}

// versionCommand prints the version.
func versionCommand() cli.Command {
	return cli.Command{
		Name: "version", Summary: "Print the version of this program",
		Details: "A program that was built in a checkout names the commit and its date as well.",
		Examples: []cli.Example{
			{Purpose: "For a report of a defect", Line: "shop version"},
			{Purpose: "Alongside the results of a test; shop --version and shop -v print the same", Line: "shop version > version.txt"},
		},
		Define: func(f *cli.Flags) cli.Run {
			return func(context.Context, []string) error {
				_, err := fmt.Fprintln(f.Stdout, build())
				return err
			}
		},
	}
}
