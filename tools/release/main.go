// Release checks, prepares and describes the releases of perdure's modules.
//
//	go run -C tools ./release check ..            what `make release-check` runs
//	go run -C tools ./release check .. modules    one of its checks
//	go run -C tools ./release tag .. v0.1.0       commit and tag a release in the local repository
//	go run -C tools ./release notes .. v0.1.0     print the release's section of CHANGELOG.md
//	go run -C tools ./release license-texts .. FILE  write the license texts of the command's dependencies
//	go run -C tools ./release sbom .. BINARY FILE write the SPDX document of a binary
//	go run -C tools ./release third-party ..      write THIRD_PARTY.md
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

var errUsage = errors.New("usage: release check ROOT [licenses] [api] [modules] [binary] [binaries] | " +
	"tag ROOT VERSION | notes ROOT VERSION | license-texts ROOT FILE | sbom ROOT BINARY FILE | third-party ROOT")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to release
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) < 2 { //nolint:mnd // a command and its directory
		return errUsage
	}
	command, root, rest := args[0], args[1], args[2:]
	switch {
	case command == "check":
		return check(ctx, out, root, rest)
	case command == "third-party" && len(rest) == 0:
		return updateThirdParty(ctx, root)
	case command == "tag" && len(rest) == 1:
		return tagRelease(ctx, out, root, rest[0])
	case command == "notes" && len(rest) == 1:
		return printNotes(out, root, rest[0])
	case command == "license-texts" && len(rest) == 1:
		return writeLicenseTexts(ctx, root, rest[0])
	case command == "sbom" && len(rest) == 2: //nolint:mnd // a binary and a document
		return writeSBOM(root, rest[0], rest[1])
	}
	return errUsage
}
