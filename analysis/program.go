package analysis

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// mostEffects is how many effects of one function travel: whoever mends them runs the linter again.
const mostEffects = 12

// program is what is known of the package that is looked at.
type program struct {
	pass    *analysis.Pass
	set     *settings
	ignores *ignores
	// foreign: a dependency of another module, of which only facts are wanted.
	foreign bool

	nodes []*node
	of    map[types.Object]*node
	// assigned has what is assigned to each local variable, writers who writes each of the package's.
	assigned map[*types.Var][]ast.Expr
	writers  map[*types.Var]token.Pos
	called   map[*ast.Ident]*ast.CallExpr
	declared map[*types.Func]*ast.FuncDecl
	// askers has, of methods that were looked at, whether they ask for something through the context in their struct.
	askers map[*types.Func]bool
}

// node is a function, a literal that takes an orchestration's context, or the value of a package's variable.
type node struct {
	name string
	obj  types.Object
	body ast.Node
	sig  *types.Signature // nil of a variable
	// outer is the function around a literal.
	outer *node
	// orchestration: it is judged itself, and has no effect on its callers.
	orchestration bool

	own   []found
	calls []call
	// all is own, and what comes from calls.
	all []effect
}

// found is an effect of a node's own, and where.
type found struct {
	effect
	pos token.Pos
}

// call is a call, or a mention, of something that has effects.
type call struct {
	verb string
	to   types.Object
	pos  token.Pos
	// sorted: what it returns is sorted behind it.
	sorted bool
}

func newProgram(pass *analysis.Pass, s *settings) *program {
	p := &program{
		pass: pass, set: s, ignores: readIgnores(pass),
		of: map[types.Object]*node{}, assigned: map[*types.Var][]ast.Expr{}, writers: map[*types.Var]token.Pos{},
		called:   map[*ast.Ident]*ast.CallExpr{},
		declared: map[*types.Func]*ast.FuncDecl{}, askers: map[*types.Func]bool{},
	}
	p.foreign = pass.Module != nil && pass.Module.Version != ""
	return p
}

// collect reads the package: first what is assigned where, then what each function does.
func (p *program) collect() {
	for _, file := range p.pass.Files {
		p.readAssignments(file)
	}
	for _, file := range p.pass.Files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				p.addFunction(d)
			case *ast.GenDecl:
				p.addVariables(d)
			}
		}
	}
}

func (p *program) addFunction(d *ast.FuncDecl) {
	obj, ok := p.pass.TypesInfo.Defs[d.Name].(*types.Func)
	if !ok || d.Body == nil {
		return
	}
	sig := obj.Signature()
	p.add(&node{name: p.display(obj), obj: obj, body: d.Body, sig: sig, orchestration: isOrchestrationCode(sig)})
}

// addVariables adds those variables of the package that have a value.
func (p *program) addVariables(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for i, name := range v.Names {
			obj := p.pass.TypesInfo.Defs[name]
			if obj == nil {
				continue
			}
			n := &node{name: name.Name, obj: obj}
			switch {
			case len(v.Values) == len(v.Names):
				n.body = v.Values[i]
			case len(v.Values) == 1:
				n.body = v.Values[0]
			}
			p.add(n)
		}
	}
}

func (p *program) add(n *node) {
	p.nodes = append(p.nodes, n)
	if n.obj != nil {
		p.of[n.obj] = n
	}
	if n.body != nil {
		(&walk{program: p, node: n}).over(n.body)
	}
	if v, ok := n.obj.(*types.Var); ok {
		p.judgeVariable(n, v)
	}
}

// judgeVariable leaves of what a variable's value does what a reader of it sees.
func (p *program) judgeVariable(n *node, v *types.Var) {
	if _, isFunc := v.Type().Underlying().(*types.Signature); !isFunc {
		n.own = slices.DeleteFunc(n.own, func(f found) bool { return p.foreign || !lasts(f.Rule) })
	}
	if by, ok := p.writers[v]; ok && !p.ignores.cover(globalRead, v.Pos()) {
		n.own = append(n.own, found{
			effect{Rule: globalRead.id, Does: "is written at " + p.at(by), At: p.at(v.Pos())}, v.Pos(),
		})
	}
}

// lasts reports whether an effect that a variable's value was made with differs between processes.
func lasts(ruleID string) bool {
	return slices.Contains([]string{clock.id, random.id, environment.id, inputOutput.id}, ruleID)
}

// propagate brings effects from what is called to who calls it, until nothing changes. Shorter chains come first.
func (p *program) propagate() {
	for _, n := range p.nodes {
		for _, f := range n.own {
			n.take(f.effect)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range p.nodes {
			changed = p.takeFromCalls(n) || changed
		}
	}
}

// takeFromCalls gives a node the effects of what it calls, and reports whether there were new ones.
func (p *program) takeFromCalls(n *node) (changed bool) {
	for _, c := range n.calls {
		for _, e := range p.effectsOf(c) {
			e = e.through(c.verb, p.display(c.to))
			e.At = p.at(c.pos)
			if n.sig != nil || isFunction(n.obj) || !p.foreign && lasts(e.Rule) {
				changed = n.take(e) || changed
			}
		}
	}
	return changed
}

func isFunction(obj types.Object) bool {
	_, ok := obj.Type().Underlying().(*types.Signature)
	return ok
}

// take adds an effect that the node does not have.
func (n *node) take(e effect) bool {
	if len(n.all) >= mostEffects || slices.ContainsFunc(n.all, func(have effect) bool {
		return have.key() == e.key()
	}) {
		return false
	}
	n.all = append(n.all, e)
	return true
}

// effectsOf is what a call brings with it.
func (p *program) effectsOf(c call) []effect {
	var all []effect
	if n := p.of[c.to]; n != nil {
		if n.orchestration {
			return nil
		}
		all = n.all
	} else {
		var fact effects
		if c.to.Pkg() == p.pass.Pkg || !p.pass.ImportObjectFact(c.to, &fact) {
			return nil
		}
		all = fact.List
	}
	if c.sorted {
		all = slices.DeleteFunc(slices.Clone(all), func(e effect) bool { return e.Unsorted })
	}
	return all
}

// export leaves facts for the packages that import this one.
func (p *program) export() {
	for _, n := range p.nodes {
		list := n.all
		if p.foreign {
			list = slices.DeleteFunc(slices.Clone(list), func(e effect) bool { return !ruleOf(e.Rule).foreign })
		}
		if n.obj != nil && !n.orchestration && len(list) > 0 {
			p.pass.ExportObjectFact(n.obj, &effects{list})
		}
		if f, ok := n.obj.(*types.Func); ok && n.orchestration && isAsking(p, f) {
			p.pass.ExportObjectFact(f, &asking{})
		}
	}
}

// report tells of everything that orchestration code does and must not.
func (p *program) report() {
	for _, n := range p.nodes {
		if !n.orchestration {
			continue
		}
		told := map[string]bool{}
		for _, f := range n.own {
			p.tell(ruleOf(f.Rule), f.pos, f.Instead, f.tell(n.name))
		}
		for _, c := range n.calls {
			for _, e := range p.effectsOf(c) {
				e = e.through(c.verb, p.display(c.to))
				if text := e.tell(n.name); !told[text] {
					told[text] = true
					p.tell(ruleOf(e.Rule), c.pos, e.Instead, text)
				}
			}
		}
	}
}

// tell reports a finding, unless it is ignored or not wanted.
func (p *program) tell(r *rule, pos token.Pos, instead, what string) {
	if p.ignores.cover(r, pos) || !p.set.reports(r) {
		return
	}
	if instead == "" {
		instead = r.instead
	}
	text := what + ": " + r.why + "; " + instead + " [" + r.id + "]"
	if r.warning {
		text = "warning: " + text
	}
	p.pass.Report(analysis.Diagnostic{Pos: pos, Category: r.id, Message: text})
}

// display names a function or variable for people: with its package where that is another, with its type where it is a
// method.
func (p *program) display(obj types.Object) string {
	name := obj.Name()
	if f, ok := obj.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			name = types.TypeString(recv.Type(), func(*types.Package) string { return "" }) + "." + name
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "*"), "[")
			if !strings.HasSuffix(name, "."+obj.Name()) {
				name += "." + obj.Name()
			}
		}
	}
	if obj.Pkg() != nil && obj.Pkg() != p.pass.Pkg {
		name = obj.Pkg().Name() + "." + name
	}
	return name
}

// at is a place for people: the file with its folder where that is another package's.
func (p *program) at(pos token.Pos) string {
	where := p.pass.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(p.pass.Pkg.Path()), filepath.Base(where.Filename)), where.Line)
}
