package names

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// visitDefinition reads calls of DefineActivity, with the package variable that stores the reference.
func (d *Directory) visitDefinition(n ast.Node) bool {
	source.EachAssignment(n, func(left, right ast.Expr, shared bool) {
		if c, ok := ast.Unparen(right).(*ast.CallExpr); ok && !shared {
			d.refs[c] = d.reference(left)
		}
	})
	if c, ok := n.(*ast.CallExpr); ok {
		if f, ok := d.definition(c); ok {
			def := d.entry(c, f)
			def.Ref, def.Elsewhere = d.refs[c], d.ofAnotherProgram(c)
			d.fact.Defined = append(d.fact.Defined, def)
		}
	}
	return true
}

// definition returns the signature of a call of DefineActivity.
func (d *Directory) definition(e ast.Expr) (signature, bool) {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return signature{}, false
	}
	f, ok := signatureOf(d.Callee(c))
	return f, ok && f.defines && len(c.Args) > 0
}

// reference returns the full name of a package variable, or the empty string.
func (d *Directory) reference(e ast.Expr) string {
	if id := syntax.NameIn(e); id != nil {
		if v := syntax.PackageVar(d.Pass.TypesInfo.ObjectOf(id)); v != nil {
			return syntax.FullName(v)
		}
	}
	return ""
}

// ofAnotherProgram reports whether a definition has a queue of its own or a directive: another program registers the
// activity.
func (d *Directory) ofAnotherProgram(c *ast.CallExpr) bool {
	queue := slices.ContainsFunc(c.Args[1:], func(e ast.Expr) bool {
		opt, ok := ast.Unparen(e).(*ast.CallExpr)
		return !ok || api.Is(d.Callee(opt), "OnQueue") // another expression may also be OnQueue
	})
	return queue || d.Ignored(rules.Unregistered, c.Pos())
}

// byReference sets the name and the types of an entry from an activity reference.
func (d *Directory) byReference(n *entry, c *ast.CallExpr) {
	sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if t, ok := types.Unalias(d.TypeOf(sel.X)).(*types.Named); ok && t.TypeArgs().Len() == 2 {
		n.In, n.Out = shapeOf(t.TypeArgs().At(0)), shapeOf(t.TypeArgs().At(1))
	}
	n.Name = d.nameOfReference(sel.X)
	n.ByRef = n.Name == ""
}

// nameOfReference returns the name of an activity reference, or the empty string if it is unknown.
func (d *Directory) nameOfReference(e ast.Expr) string {
	if f, ok := d.definition(e); ok {
		return d.entry(ast.Unparen(e).(*ast.CallExpr), f).Name //nolint:forcetypeassert // a definition is a call
	}
	if v := d.Variable(e); v != nil && syntax.PackageVar(v) == nil {
		all := d.Assigned[v]
		if len(all) != 1 || d.Variable(all[0]) != nil && syntax.PackageVar(d.Variable(all[0])) == nil {
			return ""
		}
		return d.nameOfReference(all[0])
	}
	name := ""
	for _, def := range d.fact.Defined {
		if def.Ref == "" || def.Ref != d.reference(e) {
			continue
		}
		if name != "" && name != def.Name {
			return ""
		}
		name = def.Name
	}
	return name
}

// operations reads the operations of a registered entity, or the operation of a call.
func (d *Directory) operations(c *ast.CallExpr, f signature, entity entry) {
	n := entry{Kind: anOperation, Entity: entity.Name, At: entity.At, pos: entity.pos}
	switch {
	case entity.Name == "":
	case f.registers:
		for _, e := range c.Args[f.name:] {
			d.fact.Registered = append(d.fact.Registered, d.operation(n, e, c.Ellipsis.IsValid()))
		}
	case len(c.Args) > 4 && !d.Ignored(rules.Unregistered, c.Pos()):
		n.Name, n.In = d.text(c.Args[3]), shapeOf(d.TypeOf(c.Args[4]))
		if given := d.typeArgs(c); given.Len() > 0 {
			n.Out = shapeOf(given.At(0))
		}
		if n.Name != "" {
			d.fact.Calls = append(d.fact.Calls, n)
		}
	}
}

// operation reads a registered operation. The name of an unknown operation is empty.
func (d *Directory) operation(n entry, e ast.Expr, spread bool) entry {
	n.pos = e.Pos()
	if v := d.Variable(e); v != nil && len(d.Assigned[v]) == 1 {
		e = d.Assigned[v][0]
	}
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || spread || !api.Is(d.Callee(c), "Operation") || len(c.Args) == 0 {
		return n
	}
	n.Name = d.text(c.Args[0])
	if given := d.typeArgs(c); given.Len() == 3 {
		n.In, n.Out = shapeOf(given.At(1)), shapeOf(given.At(2))
	}
	return n
}
