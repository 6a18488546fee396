package differential_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestMain(m *testing.M) {
	name := flag.String("against", ministack,
		"the emulator: "+ministack+", or "+dynamoDBLocal+" for the tests of tables")
	flag.Parse()

	i := slices.IndexFunc(emulators(), func(e emulator) bool { return e.name == *name })
	if i < 0 {
		fmt.Fprintf(os.Stderr, "differential: no emulator is named %q\n", *name)
		os.Exit(2)
	}

	realCloud = emulators()[i]
	os.Exit(realCloud.main(m.Run))
}
