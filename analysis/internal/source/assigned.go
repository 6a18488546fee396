package source

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/perdure/perdure/analysis/internal/syntax"
)

// readAssignments collects the declared functions, the assigned values, and the writes of package variables.
func (p *Package) readAssignments(file *ast.File) {
	test := strings.HasSuffix(p.Pass.Fset.Position(file.Pos()).Filename, "_test.go")
	for _, decl := range file.Decls {
		f, isFunc := decl.(*ast.FuncDecl)
		starts := test || isFunc && f.Recv == nil && (f.Name.Name == "init" || f.Name.Name == "main")
		if isFunc && f.Body != nil {
			if obj, ok := p.Pass.TypesInfo.Defs[f.Name].(*types.Func); ok {
				p.Declared[obj] = f
			}
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && syntax.IsOnce(p.Callee(c)) {
				return false // all readers see the same value
			}
			p.readStatement(n)
			if isFunc && !starts {
				p.readWrites(n)
			}
			return true
		})
	}
}

func (p *Package) readStatement(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		assign(p, n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		assign(p, n.Names, n.Values)
	case *ast.CallExpr:
		p.readArguments(n)
	}
}

// assign records an assignment. Several variables may share one value, the results of a call.
func assign[E ast.Expr](p *Package, left []E, right []ast.Expr) {
	for i, e := range left {
		if v := p.Variable(e); v != nil && len(right) > 0 {
			p.Assigned[v] = append(p.Assigned[v], right[min(i, len(right)-1)])
		}
	}
}

// readArguments records the arguments of a literal that is called directly as the values of its parameters.
func (p *Package) readArguments(c *ast.CallExpr) {
	l, ok := ast.Unparen(c.Fun).(*ast.FuncLit)
	if !ok {
		return
	}
	i := 0
	for _, field := range l.Type.Params.List {
		for _, name := range field.Names {
			if i < len(c.Args) {
				assign(p, []*ast.Ident{name}, c.Args[i:i+1])
			}
			i++
		}
	}
}

// readWrites records the first write of each package variable.
func (p *Package) readWrites(n ast.Node) {
	for _, v := range p.Written(n) {
		if _, there := p.Writers[v]; !there {
			p.Writers[v] = n.Pos()
		}
	}
}

// Written returns the package variables that a statement or call changes.
func (p *Package) Written(n ast.Node) []*types.Var {
	var vars []*types.Var
	for _, t := range p.Targets(n) {
		if v := p.packageVariable(t); v != nil {
			vars = append(vars, v)
		}
	}
	return vars
}

// Targets returns the expressions that a statement or call changes.
func (p *Package) Targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if p.IsBuiltin(n, "delete", "clear", "copy") {
			return n.Args[:1]
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return slices.DeleteFunc([]ast.Expr{n.Key, n.Value}, func(e ast.Expr) bool { return e == nil })
		}
	}
	return nil
}

// packageVariable returns the package variable that an expression is part of, or nil.
func (p *Package) packageVariable(e ast.Expr) *types.Var {
	for e != nil {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return syntax.PackageVar(p.Pass.TypesInfo.Uses[x])
		case *ast.SelectorExpr:
			if v := syntax.PackageVar(p.Pass.TypesInfo.Uses[x.Sel]); v != nil {
				return v
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
	return nil
}
