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
				return false // all readers read the same value
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
	EachAssignment(n, func(left, right ast.Expr, _ bool) { p.assign(left, right) })
	if c, ok := n.(*ast.CallExpr); ok {
		p.readArguments(c)
	}
}

func (p *Package) assign(left, right ast.Expr) {
	if v := p.Variable(left); v != nil {
		p.Assigned[v] = append(p.Assigned[v], right)
	}
}

// EachAssignment calls f with each variable of an assignment or declaration and its value. shared is true if right is a
// call with several results.
func EachAssignment(n ast.Node, f func(left, right ast.Expr, shared bool)) {
	each := func(i, variables int, left ast.Expr, values []ast.Expr) {
		if len(values) > 0 {
			f(left, values[min(i, len(values)-1)], variables != len(values))
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			each(i, len(n.Lhs), left, n.Rhs)
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			each(i, len(n.Names), name, n.Values)
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
				p.assign(name, c.Args[i])
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
