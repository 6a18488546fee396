package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// isConditional reports whether what is looked at is done in some rounds only.
func (r *mapRange) isConditional() bool {
	return slices.ContainsFunc(r.around, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.IfStmt, *ast.CaseClause, *ast.CommClause:
			return true
		}
		return false
	})
}

// filled is the slice or array of which an expression is the next element; nil of others.
func (r *mapRange) filled(e ast.Expr) ast.Expr {
	for {
		at, ok := ast.Unparen(e).(*ast.IndexExpr)
		switch {
		case !ok:
			return nil
		case isList(r.pass.TypesInfo.TypeOf(at.X)) && r.moves(at.Index):
			return at.X
		}
		e = at.X
	}
}

// moves reports whether an index is changed in the loop.
func (r *mapRange) moves(index ast.Expr) bool {
	v := r.variable(index)
	return v != nil && isWithin(r.loop.Body, func(n ast.Node) bool {
		return slices.ContainsFunc(r.targets(n), func(left ast.Expr) bool { return r.variable(left) == v })
	})
}

// keepsLast notes what is given in each round, and used when the loop is over: it is what came last.
func (r *mapRange) keepsLast(a *ast.AssignStmt) {
	if left := a.Lhs[0]; !r.isRead(left, r.loop.Body, token.NoPos) && r.isUsedBehind(left) {
		r.does(mapOrder, a.Pos(), overMap+"keeps the last element in "+types.ExprString(left), "")
	}
}

// isUsedBehind reports whether something is read when the loop is over, or may be by others.
func (r *mapRange) isUsedBehind(left ast.Expr) bool {
	base := baseOf(left)
	v := r.variable(base)
	switch {
	case v == nil:
		return false
	case global(v) != nil || base != left && isPointer(v.Type()):
		return true
	case r.node.sig != nil && slices.Contains(slices.Collect(r.node.sig.Results().Variables()), v):
		return true
	}
	return r.isRead(base, r.node.body, r.loop.End())
}

// isRead reports whether an expression stands in a piece of code, behind a place, otherwise than as what is assigned
// to.
func (r *mapRange) isRead(e ast.Expr, body ast.Node, behind token.Pos) bool {
	text, found := types.ExprString(e), false
	targets := map[ast.Expr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		for _, left := range r.targets(n) {
			targets[left] = true
		}
		if other, ok := n.(ast.Expr); ok && other.Pos() > behind && !targets[other] && types.ExprString(other) == text {
			found = true
		}
		return !found
	})
	return found
}

// asksForOne reports whether the function compares how many keys the map has with one.
func (r *mapRange) asksForOne() bool {
	m := r.loop.X
	if c, ok := ast.Unparen(m).(*ast.CallExpr); ok && len(c.Args) == 1 {
		m = c.Args[0]
	}
	length := "len(" + types.ExprString(m) + ")"
	return isWithin(r.node.body, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok || types.ExprString(b.X) != length {
			return false
		}
		with := types.ExprString(b.Y)
		return with == "1" || with == "2"
	})
}

// mentions reports whether an expression has another in it.
func mentions(e ast.Expr, text string) bool {
	return isWithin(e, func(n ast.Node) bool {
		part, ok := n.(ast.Expr)
		return ok && types.ExprString(part) == text
	})
}

// baseOf is the variable that an expression is part of.
func baseOf(e ast.Expr) ast.Expr {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return x
		}
	}
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// isList reports whether a type is of a slice, of an array, or of a pointer to one.
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
