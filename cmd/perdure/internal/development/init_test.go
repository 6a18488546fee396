package development

import "testing"

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
