package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
)

// TestOperations_grants_areThoseOfTheConstruct compares the table with the calls that the grants of the construct
// permit. The test reads the source of the grants, because the construct is a separate module.
func TestOperations_grants_areThoseOfTheConstruct(t *testing.T) {
	t.Parallel()
	grants := readGrants(t)
	used := map[string]bool{}
	for _, o := range api.Operations() {
		if o.Path == "" {
			continue
		}
		permits := func(pattern string) bool { return permitsCall(pattern, o.Method+o.Path) }
		if !slices.ContainsFunc(grants[o.Grant], permits) {
			t.Errorf("%s: %s does not permit %s %s: %v", o.ID, o.Grant, o.Method, o.Path, grants[o.Grant])
		}
		for _, pattern := range grants[o.Grant] {
			used[o.Grant+" "+pattern] = used[o.Grant+" "+pattern] || permits(pattern)
		}
		// a grant may permit no more than the table states, except reads
		for name, patterns := range grants {
			if name != o.Grant && o.Grant != "GrantRead" && slices.ContainsFunc(patterns, permits) {
				t.Errorf("%s: %s also permits the operation", o.ID, name)
			}
		}
	}
	for name, patterns := range grants {
		for _, pattern := range patterns {
			if pattern != readCalls && !used[name+" "+pattern] {
				t.Errorf("%s: no operation needs %s", name, pattern)
			}
		}
	}
}

const readCalls = "*/GET/v1/*"

// permitsCall reports whether a resource of execute-api covers a call, such as POST/v1/jobs. In a resource, * matches
// any text.
func permitsCall(resource, call string) bool {
	pattern := strings.TrimPrefix(resource, "*/")
	prefix, open := strings.CutSuffix(pattern, "*")
	return call == pattern || open && strings.HasPrefix(call, prefix)
}

// readGrants returns the calls of the HTTP API that each grant permits.
func readGrants(t *testing.T) map[string][]string {
	t.Helper()
	grants := map[string][]string{}
	var renewPath string
	for _, path := range []string{"../infra/cdk/api.go", "../infra/cdk/grants.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == "renewPath" {
				renewPath = text(v.Values[0])
			}
			return true
		})
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && strings.HasPrefix(f.Name.Name, "Grant") {
				grants[f.Name.Name] = append(grants[f.Name.Name], callsOf(f)...)
			}
		}
	}
	grants["GrantRenew"] = []string{"*/POST" + renewPath}
	return grants
}

// callsOf returns the calls that a grant passes to grantCalls, which adds the reads, or to grantOnly.
func callsOf(f *ast.FuncDecl) (calls []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "grantCalls" && s.Sel.Name != "grantOnly" {
			return true
		}
		if s.Sel.Name == "grantCalls" {
			calls = append(calls, readCalls)
		}
		for _, arg := range c.Args[2:] {
			calls = append(calls, text(arg))
		}
		return true
	})
	return calls
}

func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}
