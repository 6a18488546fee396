package analysis

import (
	"go/ast"
	"go/types"
	"slices"
)

// define reads references to activities, with the variable of the package that each is in.
func (d *directory) define(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if len(n.Names) == len(n.Values) {
				d.refersTo(name, n.Values[i])
			}
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				d.refersTo(left, n.Rhs[i])
			}
		}
	case *ast.CallExpr:
		if f, ok := definition(d.pass.TypesInfo, n); ok {
			def := d.naming(n, f)
			def.Ref, def.Elsewhere = d.refs[n], d.ofAnotherProgram(n)
			d.names.Defined = append(d.names.Defined, def)
		}
	}
	return true
}

// definition is the form of a call of DefineActivity.
func definition(info *types.Info, e ast.Expr) (form, bool) {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return form{}, false
	}
	f, ok := formOf(calleeOf(info, c))
	return f, ok && f.defines && len(c.Args) > 0
}

func (d *directory) refersTo(left, right ast.Expr) {
	if c, ok := ast.Unparen(right).(*ast.CallExpr); ok {
		d.refs[c] = d.reference(left)
	}
}

// reference is the name of a variable of a package; empty of other expressions.
func (d *directory) reference(e ast.Expr) string {
	id := nameIn(e)
	if id == nil {
		return ""
	}
	if v := global(d.pass.TypesInfo.ObjectOf(id)); v != nil {
		return nameOf(v)
	}
	return ""
}

// ofAnotherProgram reports whether an activity is one of a worker of another program: it says so, or has a queue of its
// own.
func (d *directory) ofAnotherProgram(c *ast.CallExpr) bool {
	queue := slices.ContainsFunc(c.Args[1:], func(e ast.Expr) bool {
		opt, ok := ast.Unparen(e).(*ast.CallExpr)
		return !ok || isOurs(calleeOf(d.pass.TypesInfo, opt), "OnQueue") // what is no call may be that
	})
	return queue || d.ignores.cover(unregistered, c.Pos())
}

// byReference gives a naming what the reference has whose method is called: its name, where that is known, and its
// types.
func (d *directory) byReference(n *naming, c *ast.CallExpr) {
	sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if t, ok := types.Unalias(d.pass.TypesInfo.TypeOf(sel.X)).(*types.Named); ok && t.TypeArgs().Len() == 2 {
		n.In, n.Out = shapeOf(t.TypeArgs().At(0)), shapeOf(t.TypeArgs().At(1))
	}
	n.Name = d.nameOfReference(sel.X)
	n.ByRef = n.Name == ""
}

// nameOfReference is the name that a reference was made with; empty where that is not known.
func (d *directory) nameOfReference(e ast.Expr) string {
	if f, ok := definition(d.pass.TypesInfo, e); ok {
		return d.naming(ast.Unparen(e).(*ast.CallExpr), f).Name //nolint:forcetypeassert // a definition is a call
	}
	if v := d.variable(e); v != nil && global(v) == nil {
		if all := d.assigned[v]; len(all) == 1 && (d.variable(all[0]) == nil || global(d.variable(all[0])) != nil) {
			return d.nameOfReference(all[0])
		}
		return ""
	}
	name := ""
	for _, def := range d.names.Defined {
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

// isDefined reports whether a reference has the name, or may have it.
func (d *directory) isDefined(name string) bool {
	return slices.ContainsFunc(d.names.Defined, func(def naming) bool { return def.Name == name || def.Name == "" })
}

// isElsewhere reports whether an activity is defined as one of another program.
func (d *directory) isElsewhere(name string) bool {
	return slices.ContainsFunc(d.names.Defined, func(def naming) bool { return def.Name == name && def.Elsewhere })
}

// mayHaveAny reports whether it is not known what an entity has, since its name, or that of another, is put together.
func (d *directory) mayHaveAny(entity string) bool {
	return entity == "" || slices.ContainsFunc(d.names.Registered, func(r naming) bool {
		return r.What == anEntity && r.Name == ""
	})
}

// isEntity reports whether an entity is registered by a name.
func (d *directory) isEntity(name string) bool {
	return slices.ContainsFunc(d.names.Registered, func(r naming) bool { return r.What == anEntity && r.Name == name })
}

// operations reads the operations of an entity that is registered, or the one that is called.
func (d *directory) operations(c *ast.CallExpr, f form, entity naming) {
	n := naming{What: anOperation, Of: entity.Name, At: entity.At, pos: entity.pos}
	switch {
	case entity.Name == "":
	case f.registers:
		for _, e := range c.Args[f.name:] {
			d.names.Registered = append(d.names.Registered, d.operation(n, e, c.Ellipsis.IsValid()))
		}
	case len(c.Args) > 4 && !d.ignores.cover(unregistered, c.Pos()):
		n.Name, n.In = d.text(c.Args[3]), shapeOf(d.pass.TypesInfo.TypeOf(c.Args[4]))
		if given := d.pass.TypesInfo.Instances[nameIn(c.Fun)].TypeArgs; given.Len() > 0 {
			n.Out = shapeOf(given.At(0))
		}
		if n.Name != "" {
			d.names.Calls = append(d.names.Calls, n)
		}
	}
}

// operation reads one that is registered. Of one that is not known the name is empty: it may be any.
func (d *directory) operation(n naming, e ast.Expr, spread bool) naming {
	n.pos = e.Pos()
	if v := d.variable(e); v != nil && len(d.assigned[v]) == 1 {
		e = d.assigned[v][0]
	}
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || spread || !isOurs(calleeOf(d.pass.TypesInfo, c), "Operation") || len(c.Args) == 0 {
		return n
	}
	n.Name = d.text(c.Args[0])
	if given := d.pass.TypesInfo.Instances[nameIn(c.Fun)].TypeArgs; given.Len() == 3 {
		n.In, n.Out = shapeOf(given.At(1)), shapeOf(given.At(2))
	}
	return n
}
