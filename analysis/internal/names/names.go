// Package names compares the activities, orchestrations, entities and updates that a program calls with its
// registrations. Facts export the calls and registrations of a package to the packages that import it.
package names

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// entry is a call, registration or definition.
type entry struct {
	Kind string
	// Entity is the entity of an operation.
	Entity string
	// Name or Func identifies the target. A registration may have both. An unknown registration has neither.
	Name, Func string
	// In and Out are the shapes of input and result. The empty string matches any shape.
	In, Out string
	At      string
	// Ref is the variable of a definition. ByRef marks a registration by an unknown reference.
	Ref   string
	ByRef bool
	// Elsewhere marks an activity that another program registers.
	Elsewhere bool

	pos token.Pos // not set in facts
}

// Kinds of entries.
const (
	anActivity      = "activity"
	anOrchestration = "orchestration"
	anEntity        = "entity"
	anOperation     = "operation"
	anUpdate        = "update"
)

// describe returns the kind and the name for findings.
func (n *entry) describe() string {
	if n.Func != "" {
		return n.Kind + " " + n.Func
	}
	return fmt.Sprintf("%s %q", n.Kind, n.Name)
}

// signature has the positions of arguments of a function of package perdure, from 1. 0 means that there is none.
type signature struct {
	kind               string
	registers, defines bool
	// ref marks a method of an activity reference.
	ref bool
	// Positions of the arguments for name, function and input.
	name, fn, in int
	// Positions of the type arguments for input and result.
	inType, outType int
}

// none is the name of a registration without a name, and the function of a registration without a function.
const none = "none"

func signatureOf(f *types.Func) (signature, bool) {
	switch {
	case api.Is(f, "ActivityRef.Register"):
		return signature{kind: anActivity, registers: true, ref: true, fn: 2}, true
	case api.Is(f, "ActivityRef.Call"):
		return signature{kind: anActivity, ref: true}, true
	}
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != api.Root || f.Signature().Recv() != nil {
		return signature{}, false
	}
	is, ok := signatures[f.Name()]
	return is, ok
}

// signatures are the functions with a name or function as argument.
var signatures = map[string]signature{
	"AddActivity":                  {kind: anActivity, registers: true, name: 2, fn: 3, inType: 1, outType: 2},
	"AddOrchestration":             {kind: anOrchestration, registers: true, name: 2, fn: 3, inType: 1, outType: 2},
	"AddEntity":                    {kind: anEntity, registers: true, name: 2},
	"SetUpdateHandler":             {kind: anUpdate, registers: true, name: 2, inType: 1, outType: 2},
	"Operation":                    {kind: anUpdate, registers: true, name: 1, inType: 2, outType: 3},
	api.CallUpdate:                 {kind: anUpdate, name: 3, in: 4, outType: 1},
	"DefineActivity":               {kind: anActivity, defines: true, name: 1, inType: 1, outType: 2},
	"CallActivity":                 {kind: anActivity, fn: 2},
	"CallSubOrchestration":         {kind: anOrchestration, fn: 2},
	api.CallActivityByName:         {kind: anActivity, name: 2, in: 3, outType: 1},
	api.CallSubOrchestrationByName: {kind: anOrchestration, name: 2, in: 3, outType: 1},
	"StartOrchestration":           {kind: anOrchestration, name: 2, in: 3},
	"WithStart":                    {kind: anOrchestration, name: 1, in: 2},
	api.CallEntity:                 {kind: anEntity, name: 2},
}

// Directory contains the calls, registrations and definitions of a package and of its imports.
type Directory struct {
	*source.Package

	fact Fact
	// known is the set of entries of imported packages. Several imports may export the same entry.
	known map[entry]struct{}
	// refs has the package variables to which calls are assigned.
	refs map[*ast.CallExpr]string
	// read has the function names of calls that readCall understood.
	read map[*ast.Ident]struct{}
}

// Read reads the calls, registrations and definitions of a package and of the packages that it imports.
func Read(program *source.Package) *Directory {
	d := &Directory{
		Package: program, known: map[entry]struct{}{}, read: map[*ast.Ident]struct{}{},
		refs: map[*ast.CallExpr]string{},
	}
	for _, imported := range d.Pass.Pkg.Imports() {
		var theirs Fact
		if d.Pass.ImportPackageFact(imported, &theirs) {
			d.fact.Calls = d.add(d.fact.Calls, theirs.Calls)
			d.fact.Registered = d.add(d.fact.Registered, theirs.Registered)
			d.fact.Defined = d.add(d.fact.Defined, theirs.Defined)
			d.fact.Reported = append(d.fact.Reported, theirs.Reported...)
		}
	}
	for _, look := range []func(ast.Node) bool{d.visitDefinition, d.visit} {
		for _, file := range d.Pass.Files {
			ast.Inspect(file, look)
		}
	}
	slices.Sort(d.fact.Reported)
	d.fact.Reported = slices.Compact(d.fact.Reported)
	return d
}

// Export exports the directory as a fact. Call Export after Check.
func (d *Directory) Export() {
	if len(d.fact.Calls)+len(d.fact.Registered)+len(d.fact.Defined) > 0 {
		d.Pass.ExportPackageFact(&d.fact)
	}
}

// add appends the entries that known does not contain.
func (d *Directory) add(to, more []entry) []entry {
	for _, n := range more {
		n.pos = token.NoPos
		if _, known := d.known[n]; !known {
			d.known[n] = struct{}{}
			to = append(to, n)
		}
	}
	return to
}

// visit reads calls. A registering function that is used in another way may register any name.
func (d *Directory) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		d.readCall(n)
	case *ast.Ident:
		f, _ := d.Pass.TypesInfo.Uses[n].(*types.Func)
		if f == nil {
			break
		}
		if _, read := d.read[n]; read {
			break
		}
		if is, ok := signatureOf(f.Origin()); ok && is.registers {
			d.fact.Registered = append(d.fact.Registered, entry{Kind: is.kind, At: d.At(n.Pos())})
		}
	}
	return true
}

// readCall reads a call or registration.
func (d *Directory) readCall(c *ast.CallExpr) {
	f, ok := signatureOf(d.Callee(c))
	if !ok || f.defines || len(c.Args) < max(f.name, f.fn, f.in) || d.Foreign && !f.registers {
		return
	}
	d.read[syntax.NameIn(c.Fun)] = struct{}{}
	n := d.entry(c, f)
	if f.kind == anEntity {
		d.operations(c, f, n)
	}
	switch {
	case f.registers:
		d.fact.Registered = append(d.fact.Registered, n)
	case (n.Name != "" || n.Func != "") && !d.Ignored(rules.Unregistered, c.Pos()):
		d.fact.Calls = append(d.fact.Calls, n)
	}
}

func (d *Directory) entry(c *ast.CallExpr, f signature) entry {
	n := entry{Kind: f.kind, At: d.At(c.Pos()), pos: c.Pos()}
	if f.registers {
		n.Name, n.Func = none, none
	}
	if f.name > 0 {
		n.Name = d.text(c.Args[f.name-1])
	}
	if f.ref {
		d.byReference(&n, c)
	}
	if f.fn > 0 {
		n.Func = d.function(c.Args[f.fn-1])
	}
	if f.in > 0 {
		n.In = shapeOf(d.TypeOf(c.Args[f.in-1]))
	}
	given := d.typeArgs(c)
	if f.inType > 0 && given.Len() >= f.inType {
		n.In = shapeOf(given.At(f.inType - 1))
	}
	if f.outType > 0 && given.Len() >= f.outType {
		n.Out = shapeOf(given.At(f.outType - 1))
	}
	return n
}

// typeArgs returns the type arguments of a call.
func (d *Directory) typeArgs(c *ast.CallExpr) *types.TypeList {
	return d.Pass.TypesInfo.Instances[syntax.NameIn(c.Fun)].TypeArgs
}

// text returns the value of a constant string, or the empty string.
func (d *Directory) text(e ast.Expr) string {
	if v := d.Pass.TypesInfo.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// function returns the full name of a function or method, none for a literal, or the empty string if it is unknown.
func (d *Directory) function(e ast.Expr) string {
	if syntax.IsLiteral(e) {
		return none
	}
	f := d.Used(e)
	if f == nil || f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
		return ""
	}
	return f.Origin().FullName()
}

// Check reports calls whose types differ from the registration, in the first package that imports both. The package
// that starts the orchestrator has all registrations, so Check also reports calls without a registration there.
func (d *Directory) Check() {
	starts, there := d.starts(), slices.Concat(d.fact.Registered, d.fact.Defined)
	for _, c := range d.fact.Calls {
		d.checkTypes(c, there, starts)
	}
	if starts.IsValid() {
		d.checkRegistered(starts)
	}
}

// starts returns the position where a main package starts the orchestrator.
func (d *Directory) starts() (pos token.Pos) {
	if d.Pass.Pkg.Name() != "main" {
		return token.NoPos
	}
	for _, file := range d.Pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if f := d.Callee(c); f != nil &&
					f.FullName() == api.Root+"/lambdahandler.StartOrchestrator" {
					pos = c.Pos()
				}
			}
			return true
		})
	}
	return pos
}

// checkTypes reports a call by name whose types differ from all registrations of the name.
func (d *Directory) checkTypes(c entry, there []entry, starts token.Pos) {
	if c.Name == "" || slices.Contains(d.fact.Reported, c.At) {
		return
	}
	at, wrong := c.pos, ""
	for _, r := range there {
		if r.Name != c.Name || r.Kind != c.Kind || r.Entity != c.Entity {
			continue
		}
		switch {
		case differ(c.In, r.In):
			wrong = fmt.Sprintf("gets %s but takes %s", c.In, r.In)
		case differ(c.Out, r.Out):
			wrong = fmt.Sprintf("returns %s but the call expects %s", r.Out, c.Out)
		default:
			return
		}
		if !at.IsValid() {
			at = r.pos
		}
	}
	if !at.IsValid() {
		at = starts
	}
	if wrong != "" && at.IsValid() {
		d.fact.Reported = append(d.fact.Reported, c.At)
		d.Report(rules.Misfit, at, "", fmt.Sprintf("%s, called at %s, %s", c.describe(), c.At, wrong))
	}
}

func differ(one, other string) bool { return one != "" && other != "" && one != other }

// checkRegistered reports calls that the program does not register.
func (d *Directory) checkRegistered(pos token.Pos) {
	for _, c := range d.fact.Calls {
		if d.fact.isRegistered(c) {
			continue
		}
		text := fmt.Sprintf("%s, called at %s, is not registered in this program", c.describe(), c.At)
		if similar := d.fact.similar(c); similar != "" {
			text += fmt.Sprintf(" (did you mean %q?)", similar)
		}
		d.Report(rules.Unregistered, pos, "", text)
	}
}
