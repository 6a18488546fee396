package perduretest_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
)

// sourceOf returns the code of a package without its tests.
func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// The backend of the Client implements all optional interfaces, except some without an effect in tests.
func TestClientAdapter_optionalInterfaces_areImplemented(t *testing.T) {
	t.Parallel()
	offers := map[string]reflect.Type{
		// no credentials; for operators
		"Identifier": nil, "provider.DeadLetters": nil, "provider.Reconciler": nil, "provider.Monitoring": nil,
		"TailReader": nil, // saves reads; Follow polls without it
		"Waiter":     reflect.TypeFor[client.Waiter](), "UpdateWaiter": reflect.TypeFor[client.UpdateWaiter](),
		"provider.Querier":              reflect.TypeFor[provider.Querier](),
		"provider.StartPreparer":        reflect.TypeFor[provider.StartPreparer](),
		"provider.PayloadStoreProvider": reflect.TypeFor[provider.PayloadStoreProvider](),
	}
	source := sourceOf(t, "../client") + sourceOf(t, "../admin") + sourceOf(t, "../internal/clientcall")
	if strings.Contains(source, "hub.(") {
		t.Error("the client uses a type assertion on a hub; use unwrap.As")
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`unwrap\.As\[([\w.]+)\]\(`).FindAllStringSubmatch(source, -1) {
		found[m[1]] = true
		switch offer, known := offers[m[1]]; {
		case !known:
			t.Errorf("unknown interface %s of a hub; add it to this test", m[1])
		case offer != nil && !perduretest.BubbleType.Implements(offer):
			t.Errorf("the hub of an Env does not implement %s", m[1])
		}
	}
	if len(found) != len(offers) {
		t.Errorf("got interfaces %v", found)
	}
}

// Every call of a client runs in virtual time. None bypasses the adapter.
func TestClientAdapter_methodsOfBackends_areOverridden(t *testing.T) {
	t.Parallel()
	own := map[string]bool{}
	method := regexp.MustCompile(`(?m)^func \(b \*(?:clientAdapter|Provider|completions|hub)\) (\w+)\(`)
	for _, m := range method.FindAllStringSubmatch(sourceOf(t, ".")+sourceOf(t, "internal/inside"), -1) {
		own[m[1]] = true
	}
	for _, backend := range []reflect.Type{reflect.TypeFor[client.Backend](), reflect.TypeFor[admin.Backend]()} {
		for m := range backend.Methods() {
			if !own[m.Name] {
				t.Errorf("method %s is missing; its calls run outside of virtual time", m.Name)
			}
		}
	}
}
