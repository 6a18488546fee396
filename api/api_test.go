package api_test

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
)

// TestOperations_fields_areComplete requires a value or a reason for each part of an operation.
func TestOperations_fields_areComplete(t *testing.T) {
	t.Parallel()
	ids, routes := map[string]bool{}, map[string]bool{}
	for _, o := range api.Operations() {
		if o.ID == "" || ids[o.ID] || o.Summary == "" {
			t.Errorf("%s: ID or summary is missing, or the ID is repeated", o.ID)
		}
		ids[o.ID] = true
		for name, i := range map[string]api.Interface{"Go": o.Go, "Command": o.Command, "WebUI": o.WebUI} {
			if (len(i.Names) == 0) == (i.Reason == "") {
				t.Errorf("%s: %s needs names or a reason", o.ID, name)
			}
		}
		if route := o.Method + " " + o.Path; o.Path != "" {
			if routes[route] || o.Method == "" || o.NoRoute != "" || o.Grant == "" || len(o.Success) == 0 {
				t.Errorf("%s: route %s is incomplete or repeated", o.ID, route)
			}
			routes[route] = true
		} else if o.NoRoute == "" {
			t.Errorf("%s: NoRoute has no reason", o.ID)
		}
		if o.Changes != (o.Repeat != "") {
			t.Errorf("%s: Repeat: want it exactly for operations that change data", o.ID)
		}
		audited := o.Audit.Action != "" && o.Audit.Subject != ""
		if o.Changes != (audited || o.Audit.Reason != "") || audited && o.Audit.Reason != "" {
			t.Errorf("%s: Audit: want it exactly for operations that change data", o.ID)
		}
		if o.Changes && o.Method == http.MethodGet {
			t.Errorf("%s: GET request changes data", o.ID)
		}
	}
}

// TestOperations_goMethods_areThoseOfTheClients compares the table with the methods of package client and admin.
func TestOperations_goMethods_areThoseOfTheClients(t *testing.T) {
	t.Parallel()
	exist := map[string]bool{}
	for prefix, typ := range map[string]reflect.Type{
		"client.": reflect.TypeFor[*client.Client](), "admin.": reflect.TypeFor[*admin.Client](),
		"client.Schedules.": reflect.TypeFor[*client.Schedules](),
	} {
		for m := range typ.Methods() {
			exist[prefix+m.Name] = true
		}
	}
	delete(exist, "client.Schedules") // returns the client of schedules
	stated := map[string]bool{}
	for _, o := range api.Operations() {
		for _, name := range o.Go.Names {
			stated[name] = true
			if !exist[name] {
				t.Errorf("%s: %s does not exist", o.ID, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exist)) {
		if !stated[name] {
			t.Errorf("%s: method belongs to no operation", name)
		}
	}
}

// operations returns the operations of a route. In the path, * matches a segment.
func operations(method, path string) (all []*api.Operation) {
	table := api.Operations()
	for i := range table {
		if o := &table[i]; o.Path != "" && (method == "*" || method == o.Method) && matches(path, o.Path) {
			all = append(all, o)
		}
	}
	return all
}

// matches reports whether a path fits a route. In the path, * matches any segment.
func matches(path, route string) bool {
	p, r := strings.Split(path, "/"), strings.Split(route, "/")
	return slices.EqualFunc(p, r, func(p, r string) bool {
		return p == r || p == "*" || strings.HasPrefix(r, "{") && p != ""
	})
}
