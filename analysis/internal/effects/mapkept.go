package effects

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// isConditional reports whether only some iterations run the current node.
func (r *mapRange) isConditional() bool {
	return slices.ContainsFunc(r.around, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.IfStmt, *ast.CaseClause, *ast.CommClause:
			return true
		}
		return false
	})
}

// filled returns the slice or array whose next element is e, or nil.
func (r *mapRange) filled(e ast.Expr) ast.Expr {
	for {
		at, ok := ast.Unparen(e).(*ast.IndexExpr)
		switch {
		case !ok:
			return nil
		case isList(r.TypeOf(at.X)) && r.moves(at.Index):
			return at.X
		}
		e = at.X
	}
}

// moves reports whether the loop changes an index.
func (r *mapRange) moves(index ast.Expr) bool {
	v := r.Variable(index)
	return v != nil && syntax.Contains(r.loop.Body, func(n ast.Node) bool {
		return slices.ContainsFunc(r.Targets(n), func(left ast.Expr) bool { return r.Variable(left) == v })
	})
}

// keepsLast records a variable that each iteration sets and that is read after the loop.
func (r *mapRange) keepsLast(a *ast.AssignStmt) {
	if left := a.Lhs[0]; !r.isRead(left, r.loop.Body, token.NoPos) && r.isUsedAfter(left) {
		r.record(rules.MapOrder, a.Pos(), overMap+"keeps the last element in "+types.ExprString(left), "")
	}
}

// isUsedAfter reports whether code after the loop, or other code, may read a variable.
func (r *mapRange) isUsedAfter(left ast.Expr) bool {
	base := syntax.BaseOf(left)
	v := r.Variable(base)
	switch {
	case v == nil:
		return false
	case syntax.PackageVar(v) != nil || base != left && isPointer(v.Type()):
		return true
	case r.node.Sig != nil && slices.Contains(slices.Collect(r.node.Sig.Results().Variables()), v):
		return true
	}
	return r.isRead(base, r.node.Body, r.loop.End())
}

// isRead reports whether code reads an expression after a position.
func (r *mapRange) isRead(e ast.Expr, body ast.Node, after token.Pos) bool {
	text, found := types.ExprString(e), false
	targets := map[ast.Expr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		for _, left := range r.Targets(n) {
			targets[left] = true
		}
		if other, ok := n.(ast.Expr); ok && other.Pos() > after && !targets[other] && types.ExprString(other) == text {
			found = true
		}
		return !found
	})
	return found
}

// checksForOne reports whether the function compares the length of the map with 1 or 2.
func (r *mapRange) checksForOne() bool {
	m := r.loop.X
	if c, ok := ast.Unparen(m).(*ast.CallExpr); ok && len(c.Args) == 1 {
		m = c.Args[0]
	}
	length := "len(" + types.ExprString(m) + ")"
	return syntax.Contains(r.node.Body, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok || types.ExprString(b.X) != length {
			return false
		}
		with := types.ExprString(b.Y)
		return with == "1" || with == "2"
	})
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// isList reports whether a type is a slice, an array, or a pointer to one.
func isList(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	switch t.Underlying().(type) {
	case *types.Slice, *types.Array:
		return true
	}
	return false
}

func isText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}
