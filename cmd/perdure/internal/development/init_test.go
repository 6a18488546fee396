package development

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestDescribeApplication_directoryAndModule_determineNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ dir, module, version, wantModule, wantPackage, wantVersion string }{
		{
			dir: "/x/orders", version: "v0.3.0", wantModule: "example.com/orders", wantPackage: "orders",
			wantVersion: "v0.3.0",
		},
		{
			dir: "/x/Order Book_2", version: "v0.3.0", wantModule: "example.com/order-book-2",
			wantPackage: "orderbook2", wantVersion: "v0.3.0",
		},
		{
			dir: "/x/y", module: "corp.example/a/go-orders", version: "v1.0.0", wantModule: "corp.example/a/go-orders",
			wantPackage: "goorders", wantVersion: "v1.0.0",
		},
		{dir: "/x/42", version: "v1.0.0", wantModule: "example.com/42", wantPackage: "app", wantVersion: "v1.0.0"},
		{dir: "/x/main", version: "v1.0.0", wantModule: "example.com/main", wantPackage: "app", wantVersion: "v1.0.0"},
	} {
		app, err := describeApplication(tt.dir, initFlags{module: tt.module}, tt.version)
		if err != nil || app.Module != tt.wantModule || app.Package != tt.wantPackage || app.Version != tt.wantVersion {
			t.Errorf("%s %s: %+v, %v", tt.dir, tt.module, app, err)
		}
	}
}

// The tutorial shows the code that init creates.
func TestTutorial_goBlocks_areOfTheApplication(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/start/first-application.md")
	if err != nil {
		t.Fatal(err)
	}
	app, err := describeApplication("/x/guests", initFlags{}, "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	files, err := app.files()
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		code.Write(file.content)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Error("the tutorial has no code")
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), block[1]) {
			t.Errorf("init creates no file with\n%s", block[1])
		}
	}
}
