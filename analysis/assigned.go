package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// readAssignments notes what is assigned to local variables, and which functions write the package's.
func (p *program) readAssignments(file *ast.File) {
	test := strings.HasSuffix(p.pass.Fset.Position(file.Pos()).Filename, "_test.go")
	for _, decl := range file.Decls {
		f, isFunc := decl.(*ast.FuncDecl)
		starts := test || isFunc && f.Recv == nil && (f.Name.Name == "init" || f.Name.Name == "main")
		if isFunc && f.Body != nil {
			declare(p, f)
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && isOnce(calleeOf(p.pass.TypesInfo, c)) {
				return false // what is made once is the same for all who read it
			}
			p.readStatement(n)
			if isFunc && !starts {
				p.readWrites(n)
			}
			return true
		})
	}
}

// declare notes a function that is declared.
func declare(p *program, d *ast.FuncDecl) {
	if f, ok := p.pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
		p.declared[f] = d
	}
}

func (p *program) readStatement(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		p.readAssignment(n)
	case *ast.ValueSpec:
		p.readSpec(n)
	case *ast.CallExpr:
		readArguments(p, n)
	}
}

// readArguments notes what the parameters of a function are given that is called where it is written.
func readArguments(p *program, c *ast.CallExpr) {
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

// readWrites notes the first place that writes a variable of the package.
func (p *program) readWrites(n ast.Node) {
	for _, v := range p.written(n) {
		if _, there := p.writers[v]; !there {
			p.writers[v] = n.Pos()
		}
	}
}

func (p *program) readAssignment(a *ast.AssignStmt) {
	for i, left := range a.Lhs {
		var right ast.Expr
		if len(a.Lhs) == len(a.Rhs) {
			right = a.Rhs[i]
		} else {
			right = a.Rhs[0]
		}
		p.assign(left, right)
	}
}

func (p *program) readSpec(s *ast.ValueSpec) {
	for i, name := range s.Names {
		switch {
		case len(s.Values) == len(s.Names):
			p.assign(name, s.Values[i])
		case len(s.Values) == 1:
			p.assign(name, s.Values[0])
		}
	}
}

func (p *program) assign(left, right ast.Expr) {
	if v := p.variable(left); v != nil {
		p.assigned[v] = append(p.assigned[v], right)
	}
}

// variable is the variable that an expression names.
func (p *program) variable(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := p.pass.TypesInfo.ObjectOf(id).(*types.Var)
	return v
}

// written are the package-level variables that a statement or call changes.
func (p *program) written(n ast.Node) []*types.Var {
	var vars []*types.Var
	for _, t := range p.targets(n) {
		if v := p.packageVariable(t); v != nil {
			vars = append(vars, v)
		}
	}
	return vars
}

// targets are the expressions that a statement or call changes.
func (p *program) targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if isBuiltin(p.pass.TypesInfo, n, "delete", "clear", "copy") {
			return n.Args[:1]
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return slices.DeleteFunc([]ast.Expr{n.Key, n.Value}, func(e ast.Expr) bool { return e == nil })
		}
	}
	return nil
}

// packageVariable is the package-level variable that an expression is part of; nil when it is of a local one.
func (p *program) packageVariable(e ast.Expr) *types.Var {
	for e != nil {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return global(p.pass.TypesInfo.Uses[x])
		case *ast.SelectorExpr:
			if v := global(p.pass.TypesInfo.Uses[x.Sel]); v != nil {
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

// global is the object if it is a package-level variable.
func global(obj types.Object) *types.Var {
	v, ok := obj.(*types.Var)
	if !ok || v.IsField() || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}

// isOnce reports whether a function runs what it is given once a process.
func isOnce(f *types.Func) bool {
	if f == nil {
		return false
	}
	switch f.FullName() {
	case "(*sync.Once).Do", "sync.OnceFunc", "sync.OnceValue", "sync.OnceValues":
		return true
	}
	return false
}
