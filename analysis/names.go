package analysis

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

var (
	unregistered = &rule{
		id: "unregistered", warning: true,
		finds: "Activities, orchestrations, entities, operations and updates that the program calls but does not " +
			"register. `DefineActivity` alone does not register. The finding is at the call of " +
			"`lambdahandler.StartOrchestrator` and suggests a similar name.",
		why: "a turn fails if a called function is not registered, and an activity waits until a worker has its " +
			"name",
		instead: "register it; if another program has it, ignore this at the call or at DefineActivity",
		misses: "Names and functions outside the registering call; references in fields and parameters; " +
			"activities with `OnQueue`; orchestrations that a client starts; updates of other orchestrations.",
	}
	misfit = &rule{
		id: "misfit",
		finds: "Calls by name whose input or result has another JSON type than the registered type: string, number, " +
			"boolean, list or object.",
		why:     "payloads are JSON, and this one cannot be decoded",
		instead: "use the registered types, or share the name and its types with perdure.DefineActivity",
		misses:  "Fields of objects; elements of lists; types with their own marshaling; values behind `any`.",
	}
)

// names is the fact about a package: what it and the packages that it imports call and register.
type names struct {
	Calls, Registered []naming
	// Defined are references to activities, which DefineActivity makes.
	Defined []naming
	// Told are the places of calls that do not fit, and of which one of the packages has told.
	Told []string
}

// AFact marks names as a fact.
func (*names) AFact() {}

// String implements fmt.Stringer, for tests and debugging.
func (n *names) String() string {
	return fmt.Sprintf("%d calls, %d registered, %d defined", len(n.Calls), len(n.Registered), len(n.Defined))
}

// naming is one call, registration or definition of what has a name.
type naming struct {
	What string
	// Of is the entity that an operation is of.
	Of string
	// Name or Func says which; a registration may have both, and one that is not understood has neither.
	Name, Func string
	// In and Out are the shapes of input and result; empty is any.
	In, Out string
	At      string
	// Ref is the variable that a definition is in. ByRef: a registration by a reference that is not known, of one that
	// is defined.
	Ref   string
	ByRef bool
	// Elsewhere: another program is known to have it.
	Elsewhere bool

	pos token.Pos // in the package that is looked at; facts have none
}

// What is named.
const (
	anActivity      = "activity"
	anOrchestration = "orchestration"
	anEntity        = "entity"
	anOperation     = "operation"
	anUpdate        = "update"
)

// called is the naming for people.
func (n *naming) called() string {
	if n.Func != "" {
		return n.What + " " + n.Func
	}
	return fmt.Sprintf("%s %q", n.What, n.Name)
}

// form says where a function of perdure has what, counted from 1; 0 is nowhere.
type form struct {
	what               string
	registers, defines bool
	// ref: a method of a reference, which has the name.
	ref bool
	// Of the arguments: the name, the function, the input.
	name, fn, in int
	// Of the type arguments: those of input and result.
	inType, outType int
}

// none stands for the name of a registration by function alone, and the other way round.
const none = "none"

func formOf(f *types.Func) (form, bool) {
	switch {
	case isOurs(f, "ActivityRef.Register"):
		return form{what: anActivity, registers: true, ref: true, fn: 2}, true
	case isOurs(f, "ActivityRef.Call"):
		return form{what: anActivity, ref: true}, true
	}
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != root || f.Signature().Recv() != nil {
		return form{}, false
	}
	is, ok := forms[f.Name()]
	return is, ok
}

// forms are the functions of perdure that name something, in the order of their arguments.
var forms = map[string]form{
	"AddActivity":      {what: anActivity, registers: true, name: 2, fn: 3, inType: 1, outType: 2},
	"AddOrchestration": {what: anOrchestration, registers: true, name: 2, fn: 3, inType: 1, outType: 2},
	"AddEntity":        {what: anEntity, registers: true, name: 2},
	"SetUpdateHandler": {what: anUpdate, registers: true, name: 2, inType: 1, outType: 2},
	// of the entity's instances
	"Operation":                {what: anUpdate, registers: true, name: 1, inType: 2, outType: 3},
	callUpdate:                 {what: anUpdate, name: 3, in: 4, outType: 1},
	"DefineActivity":           {what: anActivity, defines: true, name: 1, inType: 1, outType: 2},
	"CallActivity":             {what: anActivity, fn: 2},
	"CallSubOrchestration":     {what: anOrchestration, fn: 2},
	callActivityByName:         {what: anActivity, name: 2, in: 3, outType: 1},
	callSubOrchestrationByName: {what: anOrchestration, name: 2, in: 3, outType: 1},
	"StartOrchestration":       {what: anOrchestration, name: 2, in: 3},
	"WithStart":                {what: anOrchestration, name: 1, in: 2},
	callEntity:                 {what: anEntity, name: 2},
}

// directory is what is known of names in the package that is looked at.
type directory struct {
	*program

	names names
	// known has what is in names, since packages meet on several ways.
	known map[naming]struct{}
	// refs are the variables that references are assigned to where they are made.
	refs map[*ast.CallExpr]string
	// read has the names of functions that are called in a way which is understood.
	read map[*ast.Ident]struct{}
}

// newDirectory finds what the package names, adds what it knows from others, and leaves it to those that import it.
func newDirectory(program *program) *directory {
	d := &directory{
		program: program, known: map[naming]struct{}{}, read: map[*ast.Ident]struct{}{},
		refs: map[*ast.CallExpr]string{},
	}
	for _, imported := range d.pass.Pkg.Imports() {
		var theirs names
		if d.pass.ImportPackageFact(imported, &theirs) {
			d.names.Calls = d.add(d.names.Calls, theirs.Calls)
			d.names.Registered = d.add(d.names.Registered, theirs.Registered)
			d.names.Defined = d.add(d.names.Defined, theirs.Defined)
			d.names.Told = append(d.names.Told, theirs.Told...)
		}
	}
	for _, look := range []func(ast.Node) bool{d.define, d.look} {
		for _, file := range d.pass.Files {
			ast.Inspect(file, look)
		}
	}
	slices.Sort(d.names.Told)
	d.names.Told = slices.Compact(d.names.Told)
	return d
}

// export leaves what is known to the packages that import this one.
func (d *directory) export() {
	if len(d.names.Calls)+len(d.names.Registered)+len(d.names.Defined) > 0 {
		d.pass.ExportPackageFact(&d.names)
	}
}

// add adds what is not known yet.
func (d *directory) add(to, more []naming) []naming {
	for _, n := range more {
		n.pos = token.NoPos
		if _, known := d.known[n]; !known {
			d.known[n] = struct{}{}
			to = append(to, n)
		}
	}
	return to
}

// look reads calls that name something. A function that registers and is used in another way may register anything.
func (d *directory) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		d.readNaming(n)
	case *ast.Ident:
		f, _ := d.pass.TypesInfo.Uses[n].(*types.Func)
		if f == nil {
			break
		}
		if _, read := d.read[n]; read {
			break
		}
		if is, ok := formOf(f.Origin()); ok && is.registers {
			d.names.Registered = append(d.names.Registered, naming{What: is.what, At: d.at(n.Pos())})
		}
	}
	return true
}

// readNaming reads one call, if it names something.
func (d *directory) readNaming(c *ast.CallExpr) {
	f, ok := formOf(calleeOf(d.pass.TypesInfo, c))
	if !ok || f.defines || len(c.Args) < max(f.name, f.fn, f.in) || d.foreign && !f.registers {
		return
	}

	d.read[nameIn(c.Fun)] = struct{}{}
	n := d.naming(c, f)
	if f.what == anEntity {
		d.operations(c, f, n)
	}
	switch {
	case f.registers:
		d.names.Registered = append(d.names.Registered, n)
	case (n.Name != "" || n.Func != "") && !d.ignores.cover(unregistered, c.Pos()):
		d.names.Calls = append(d.names.Calls, n)
	}
}

func (d *directory) naming(c *ast.CallExpr, f form) naming {
	n := naming{What: f.what, At: d.at(c.Pos()), pos: c.Pos()}
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
		n.In = shapeOf(d.pass.TypesInfo.TypeOf(c.Args[f.in-1]))
	}
	given := d.pass.TypesInfo.Instances[nameIn(c.Fun)].TypeArgs
	if f.inType > 0 && given.Len() >= f.inType {
		n.In = shapeOf(given.At(f.inType - 1))
	}
	if f.outType > 0 && given.Len() >= f.outType {
		n.Out = shapeOf(given.At(f.outType - 1))
	}
	return n
}

// text is the value of a constant string; empty when it is none.
func (d *directory) text(e ast.Expr) string {
	if v := d.pass.TypesInfo.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// function is the full name of the function or method that is named, and none of a literal; empty when it is not known.
func (d *directory) function(e ast.Expr) string {
	if isLiteral(e) {
		return none
	}
	id := nameIn(e)
	if id == nil {
		return ""
	}
	f, ok := d.pass.TypesInfo.Uses[id].(*types.Func)
	if !ok || f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
		return ""
	}
	return f.Origin().FullName()
}

// judge reports calls that do not fit what is registered, once: in the package that has one of the two, or where the
// orchestrator starts. There all of its program is known: what is not registered there is not registered.
func (d *directory) judge() {
	starts, there := d.starts(), slices.Concat(d.names.Registered, d.names.Defined)
	for _, c := range d.names.Calls {
		d.judgeFit(c, there, starts)
	}
	if starts.IsValid() {
		d.judgeRegistered(starts)
	}
}

// starts is where a main package starts the orchestrator.
func (d *directory) starts() (pos token.Pos) {
	if d.pass.Pkg.Name() != "main" {
		return token.NoPos
	}
	for _, file := range d.pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if f := calleeOf(d.pass.TypesInfo, c); f != nil &&
					f.FullName() == root+"/lambdahandler.StartOrchestrator" {
					pos = c.Pos()
				}
			}
			return true
		})
	}
	return pos
}

// judgeFit reports a call by name that fits nothing which is registered under the name.
func (d *directory) judgeFit(c naming, there []naming, starts token.Pos) {
	if c.Name == "" || slices.Contains(d.names.Told, c.At) {
		return
	}
	at, wrong := c.pos, ""
	for _, r := range there {
		if r.Name != c.Name || r.What != c.What || r.Of != c.Of {
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
		d.names.Told = append(d.names.Told, c.At)
		d.tell(misfit, at, "", fmt.Sprintf("%s, called at %s, %s", c.called(), c.At, wrong))
	}
}

func differ(one, other string) bool { return one != "" && other != "" && one != other }

// judgeRegistered reports calls of what the program does not register.
func (d *directory) judgeRegistered(pos token.Pos) {
	for _, c := range d.names.Calls {
		if d.isRegistered(c) {
			continue
		}
		text := fmt.Sprintf("%s, called at %s, is not registered in this program", c.called(), c.At)
		if like := d.like(c); like != "" {
			text += fmt.Sprintf(" (did you mean %q?)", like)
		}
		d.tell(unregistered, pos, "", text)
	}
}

// isRegistered reports whether something that is called is registered, or may be, by a registration that is not
// understood.
func (d *directory) isRegistered(c naming) bool {
	if c.What == anOperation && d.mayHaveAny(c.Of) || c.What == anActivity && c.Name != "" && d.isElsewhere(c.Name) {
		return true
	}
	return slices.ContainsFunc(d.names.Registered, func(r naming) bool {
		switch {
		case r.What != c.What || r.Of != c.Of && d.isEntity(c.Of):
			return false
		case c.Func != "":
			return r.Func == c.Func || r.Func == ""
		case r.ByRef:
			return d.isDefined(c.Name)
		}
		return r.Name == c.Name || r.Name == ""
	})
}

// like is a registered name that a call may have meant.
func (d *directory) like(c naming) string {
	for _, r := range d.names.Registered {
		if r.What == c.What && (r.Of == c.Of || !d.isEntity(c.Of)) && c.Name != "" &&
			changes(c.Name, r.Name) <= 1+len(c.Name)/6 {
			return r.Name
		}
	}
	return ""
}

// changes is how many characters must be changed, added or taken away to make one text of another.
func changes(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		before := row[0]
		row[0]++
		for j := range len(to) {
			changed := before
			if from[i] != to[j] {
				changed++
			}
			before, row[j+1] = row[j+1], min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}

// shapeOf is what a type is as JSON; empty where that is not known.
func shapeOf(t types.Type) string {
	if t == nil || marshalsItself(t) || isNamed(t, "encoding/json", "Number") {
		return ""
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if _, again := p.Elem().Underlying().(*types.Pointer); again {
			return "" // it may point to itself
		}
		return shapeOf(p.Elem())
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Byte {
			return "" // a string in base64, or a list where the elements marshal themselves
		}
		return "a list"
	case *types.Array:
		return "a list"
	case *types.Map, *types.Struct:
		return "an object"
	case *types.Basic:
		return shapeOfBasic(u)
	}
	return ""
}

func shapeOfBasic(b *types.Basic) string {
	switch info := b.Info(); {
	case info&types.IsString != 0:
		return "a string"
	case info&types.IsBoolean != 0:
		return "a boolean"
	case info&(types.IsInteger|types.IsFloat) != 0:
		return "a number"
	}
	return ""
}
