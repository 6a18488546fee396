// Shape checks the layout of the code. It fails if a type has more methods, or a field is written in more files, than
// its limits allow.
//
//	go run -C tools ./shape .. ../infra/cdk
package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	mostMethods = 25 // methods of a type
	mostWriters = 2  // files that write a field
)

// facades are types with more methods: each method is an independent call of an interface, or a case of a list.
var facades = []string{
	"provider/dynamo.Provider",                   // the provider's contract
	"client.Client",                              // the calls of the HTTP API and the CLI
	"provider/providertest/internal/kit.Fixture", // helpers for tests of several subjects
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: shape MODULE...")
		os.Exit(2)
	}
	var faults []string
	for _, module := range os.Args[1:] {
		found, err := measure(os.Stdout, module)
		if err != nil {
			fmt.Fprintln(os.Stderr, "shape:", err)
			os.Exit(2)
		}
		faults = append(faults, found...)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// measure writes a line for each package, and returns the violations of the limits.
func measure(out io.Writer, dir string) (faults []string, err error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", dir, err)
	}
	if packages.PrintErrors(all) > 0 {
		return nil, fmt.Errorf("%s does not build", dir)
	}

	fmt.Fprintln(out, "lines of a function (median, 90 %, longest), files, package, its type with the most methods")
	for _, p := range all {
		s := shapeOf(p)
		if len(s.lines) == 0 {
			continue
		}
		slices.Sort(s.lines)
		n := len(s.lines)
		fmt.Fprintf(out, "%3d %3d %3d  %3d  %-28s %s\n", s.lines[n/2], s.lines[n*9/10], s.lines[n-1], len(p.Syntax),
			s.name, s.largest())
		faults = append(faults, s.faults()...)
	}
	return faults, nil
}

// shape has the counts of a package.
type shape struct {
	name    string
	lines   []int                      // of each function
	methods map[string]int             // of each type
	writers map[string]map[string]bool // the files that write a field of a type
}

func shapeOf(p *packages.Package) *shape {
	s := &shape{methods: map[string]int{}, writers: map[string]map[string]bool{}}
	_, s.name, _ = strings.Cut(p.PkgPath, "github.com/perdure/perdure")
	s.name = strings.TrimPrefix(s.name, "/")
	for _, f := range p.Syntax {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				s.add(p, fn)
			}
		}
	}
	return s
}

func (s *shape) add(p *packages.Package, fn *ast.FuncDecl) {
	from, to := p.Fset.Position(fn.Body.Lbrace), p.Fset.Position(fn.Body.Rbrace)
	s.lines = append(s.lines, max(to.Line-from.Line-1, 0))
	if fn.Recv != nil {
		if t := named(p.TypesInfo.TypeOf(fn.Recv.List[0].Type)); t != nil {
			s.methods[t.Obj().Name()]++
		}
	}

	file := filepath.Base(from.Filename)
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				s.write(p, file, target)
			}
		case *ast.IncDecStmt:
			s.write(p, file, n.X)
		}
		return true
	})
}

// write records that a file writes a field of a type of the package.
func (s *shape) write(p *packages.Package, file string, target ast.Expr) {
	field, ok := element(target).(*ast.SelectorExpr)
	if !ok {
		return
	}
	selection := p.TypesInfo.Selections[field]
	if selection == nil || selection.Kind() != types.FieldVal {
		return
	}
	of := named(selection.Recv())
	// exported fields of exported types are set by callers
	if of == nil || of.Obj().Pkg() != p.Types || of.Obj().Exported() && field.Sel.IsExported() {
		return
	}
	name := of.Obj().Name() + "." + field.Sel.Name
	if s.writers[name] == nil {
		s.writers[name] = map[string]bool{}
	}
	s.writers[name][file] = true
}

// element returns the expression that an assignment to an element, or through a pointer, changes.
func element(e ast.Expr) ast.Expr {
	for {
		switch part := e.(type) {
		case *ast.IndexExpr:
			e = part.X
		case *ast.StarExpr:
			e = part.X
		default:
			return e
		}
	}
}

func named(t types.Type) *types.Named {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// largest returns the name of the type with the most methods.
func (s *shape) largest() string {
	most := ""
	for t, n := range s.methods {
		if n > s.methods[most] || n == s.methods[most] && t < most {
			most = t
		}
	}
	if most == "" {
		return ""
	}
	return fmt.Sprintf("%s %d", most, s.methods[most])
}

func (s *shape) faults() (faults []string) {
	for t, n := range s.methods {
		if name := strings.TrimPrefix(s.name+"."+t, "."); n > mostMethods && !slices.Contains(facades, name) {
			faults = append(faults,
				fmt.Sprintf("%s has %d methods; more than %d are several types", name, n, mostMethods))
		}
	}
	for field, files := range s.writers {
		if len(files) > mostWriters {
			var names []string
			for f := range files {
				names = append(names, f)
			}
			slices.Sort(names)
			faults = append(faults,
				fmt.Sprintf("%s.%s is written from %s; give it functions of its own in one of them", s.name, field,
					strings.Join(names, ", ")))
		}
	}
	slices.Sort(faults)
	return faults
}
