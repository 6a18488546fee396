package perdureotel_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/docpage"
	"github.com/perdure/perdure/telemetry/perdureotel"
)

var update = flag.Bool("update", false, "write the attributes of spans into docs/operate/telemetry.md")

func TestTelemetryPage_listsAllAttributes(t *testing.T) {
	t.Parallel()
	const page = "../../docs/operate/telemetry.md"
	var want strings.Builder
	want.WriteString("| attribute | spans | description |\n|---|---|---|\n")
	for _, a := range perdureotel.Attributes() {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", a.Key, a.Spans, a.Description)
	}
	if *update {
		if err := docpage.Write(page, "attributes", want.String()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := docpage.Read(page, "attributes")
	if err != nil {
		t.Fatal(err)
	}
	if got != want.String() {
		t.Errorf("docs/operate/telemetry.md differs from the code (run go test ./... -update in "+
			"telemetry/perdureotel):\n%s\ninstead of\n%s", got, want.String())
	}
}
